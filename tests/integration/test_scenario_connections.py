"""Scenarios over TLS and through proxies: what the spec says of connections holds for them, too."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvloop
from tests.kit.scenarios.http_bench import HttpBench
from tests.kit.servers.certificates import Certificates
from tests.kit.servers.hostile_server import HostileServer, always, build_response
from tests.kit.servers.proxy import Proxy
from yarl import URL

from oku import RequestError
from oku.http.outbound_connection import ClientOrigin
from oku_core.http_client.connector import Way
from oku_core.spec.values.url import Url

OK = build_response(body=b"hi")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made once: keys take their time."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def server(files: Certificates) -> AsyncIterator[HostileServer]:
    """Speaks TLS."""
    server = HostileServer(always(OK), tls=files.server)
    await server.start()
    yield server
    await server.end()


@pytest.fixture
async def plain_server() -> AsyncIterator[HostileServer]:
    """Speaks none."""
    server = HostileServer(always(OK))
    await server.start()
    yield server
    await server.end()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """Between a scenario and a server."""
    proxy = Proxy()
    await proxy.start()
    yield proxy
    await proxy.end()


async def ask(url: str, times: int = 1, **fields: Any) -> None:
    """Ask so many times, one after the other, in an event loop as a host has it; each answer is right."""

    async def ask_there() -> None:
        bench = HttpBench(url, **fields)
        try:
            http = bench.begin()
            for _ in range(times):
                assert await http.get("/{i}?a=b").text() == "hi"
        finally:
            bench.close()

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(ask_there())

    await asyncio.to_thread(run)


async def test_certificates_are_checked(server: HostileServer) -> None:
    """Nothing is sent to a server that nobody trusts."""
    with pytest.raises(RequestError, match="certificate not trusted: unknown authority"):
        await ask(server.url)
    assert server.received == 0


@pytest.mark.parametrize("is_insecure", [False, True])
async def test_the_spec_says_whom_to_trust(
    server: HostileServer, files: Certificates, *, is_insecure: bool
) -> None:
    """An authority of its own, or anybody; the connection is kept."""
    await ask(server.url, 3, **({"insecure": True} if is_insecure else {"cacert": files.cacert}))
    assert server.received == 3
    assert server.connections == 1


async def test_a_proxy_passes_plain_requests_on(plain_server: HostileServer, proxy: Proxy) -> None:
    """It gets whole URLs, and what it is to know of who asks."""
    await ask(plain_server.url, 2, proxy=Url(f"http://ann:s%20p@{proxy.authority}"))
    assert proxy.asked == [f"GET {plain_server.url}/7?a=b HTTP/1.1"] * 2
    assert proxy.credentials == ["Basic YW5uOnMgcA=="] * 2


async def test_a_proxy_makes_a_tunnel_for_tls(
    server: HostileServer, files: Certificates, proxy: Proxy
) -> None:
    """TLS is spoken with the server behind it, whose certificate is checked."""
    fields: dict[str, Any] = {"proxy": Url(f"http://ann@{proxy.authority}")}
    await ask(server.url, 3, cacert=files.cacert, **fields)
    place = server.url.removeprefix("https://")
    assert proxy.asked == [f"CONNECT {place} HTTP/1.1"]
    assert proxy.credentials == ["Basic YW5uOg=="]
    assert server.received == 3
    assert [request.header("proxy-authorization") for request in server.requests] == [[]] * 3
    with pytest.raises(RequestError, match="certificate not trusted"):
        await ask(server.url, **fields)


async def test_a_request_can_ask_to_close_its_connection(plain_server: HostileServer) -> None:
    """It is not used again, although this server does not say that it closes it."""
    bench = HttpBench(plain_server.url)
    http = bench.begin()
    for headers in ({"connection": "Close"}, {"Connection": "close"}, {}, {}):
        await http.get("/", headers=headers)
    bench.close()
    assert (plain_server.received, plain_server.connections) == (4, 3)


async def test_an_origin_that_is_retired_keeps_nothing(plain_server: HostileServer) -> None:
    """A scenario may ask ever new hosts; requests that are under way at one go on."""
    origin = ClientOrigin(URL(plain_server.url), Way())
    connecting = asyncio.ensure_future(origin.open(time.monotonic_ns() + 10**10))
    await asyncio.sleep(0)
    origin.idle.close()
    used = await connecting
    assert used.is_usable
    origin.idle.rest(used, time.monotonic_ns())
    assert not used.is_usable
    assert origin.idle.pop(time.monotonic_ns()) is None
