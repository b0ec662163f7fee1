import asyncio

import aiohttp
import pytest
from yarl import URL

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, OUTCOMES, PROTOCOL_ERROR, Outcome
from oku_core.http_client.error_reason import HUNG_UP
from oku_core.http_client.http1_connection import TransportError
from oku_core.http_client.redirects import RedirectError
from oku_core.http_client.response_reader import MalformedResponseError
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.engines.aiohttp.session import build_session, classify_error
from oku_workers.engines.contract.engine_protocol import EngineContext


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Outcome.CONNECT_ERROR, TransportError(CONNECT_ERROR, OSError(111, "refused"))),
        (Outcome.PROTOCOL_ERROR, TransportError(PROTOCOL_ERROR, MalformedResponseError("no status"))),
        (Outcome.CONNECT_ERROR, aiohttp.InvalidURL("http://")),
        (Outcome.CONNECT_ERROR, aiohttp.NonHttpUrlClientError("ftp://h/")),
        (Outcome.PROTOCOL_ERROR, RedirectError("more than 3 redirections")),
        (Outcome.CONNECT_ERROR, ValueError("a line break in a header")),
        (Outcome.CONNECT_ERROR, TypeError("no header")),
        (Outcome.DISCONNECTED, TransportError(DISCONNECTED, HUNG_UP)),
        (Outcome.DISCONNECTED, aiohttp.ClientOSError(104, "reset")),
        (Outcome.DISCONNECTED, ConnectionResetError(104, "reset")),
        (Outcome.DISCONNECTED, aiohttp.ClientConnectionError("the server hung up")),
        (Outcome.PROTOCOL_ERROR, RuntimeError("Connection closed.")),
    ],
    ids=repr,
)
def test_every_error_has_its_outcome(outcome: Outcome, error: Exception) -> None:
    """It does not matter which class of aiohttp or of ours an error has; ours has a cause of its own."""
    found, cause = classify_error(error)
    assert (OUTCOMES[found], cause) == (outcome, getattr(error, "cause", error))


async def test_a_body_does_not_wait_for_a_100_continue() -> None:
    """The other engines send it at once, too."""
    session = build_session(Spec(urls=(Url("http://h/"),)), EngineContext())
    headers, url = {"Expect": "100-continue"}, URL("http://h/")
    loop = asyncio.get_running_loop()
    request = session._request_class("POST", url, data=b"x", headers=headers, loop=loop, session=session)  # noqa: SLF001
    assert (request.headers["Expect"], request._continue) == ("100-continue", None)  # noqa: SLF001
    await session.close()
