"""A body that is the same for all requests is in memory once, however many are in flight."""

import asyncio
from typing import Any

import pytest
from tests.kit.servers.any_server import ServeAny, answer
from tests.kit.workers.engine_fixtures import every_engine as engine
from tests.kit.workers.engine_fixtures import serve_any as serve
from tests.kit.workers.measured_worker import measure

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url

__all__ = ["engine", "serve"]

_MB, _AT_ONCE = 8, 12
_SLACK_MB = 2.5 * _MB
"""The text and the bytes of the body, and the pieces that are on their way."""


@pytest.mark.parametrize("path", ["", "{i}"])
async def test_a_body_of_all_requests_is_in_memory_once(serve: ServeAny, engine: Engine, path: str) -> None:
    """Whether or not they differ in what comes before it; a server that does not read changes nothing."""

    def stop_reading(transport: Any) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(transport.pause_reading)
        loop.call_later(0.5, transport.resume_reading)

    settings = {} if engine is Engine.NGHTTP2 else {"greet": stop_reading}
    server = await serve(answer, **settings)
    body = "0123456789abcdef" * (_MB * 62_500)
    spec = Spec(
        urls=(Url(f"{server.url}/{path}"),), engine=engine, method="POST", body=body,
        concurrency=_AT_ONCE, timeout_s=30.0,
    )  # fmt: skip
    measured = await measure(spec, _AT_ONCE)
    assert measured.outcomes == {"ok": _AT_ONCE}
    assert measured.growth_kib / 1000 < _SLACK_MB
