import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.kit.coordinators.transactions import change

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.tables.accounts.work_table import record_servers
from oku_coordinator.servers.served_count import (
    Address,
    NamedServers,
    NotFoundError,
    ServedCounter,
    ServedTotal,
    is_one_server,
)
from oku_core.spec.spec import Spec
from oku_core.summary.summary import ProcessSummary

Start = Callable[[web.Response], Awaitable[str]]
Fetch = Callable[..., Awaitable[ServedTotal | None]]


@pytest.fixture
async def start(ledger: Ledger) -> AsyncIterator[Start]:
    """Starts delay servers that answer one thing, for the run r1 and no other; gives the URL of each."""
    name = change(ledger, create_run, "r1", Spec(requests=10), 1.0).count_name
    servers: list[TestServer] = []

    async def start_server(response: web.Response) -> str:
        async def answer(request: web.Request) -> web.Response:
            assert request.query["run"] == name
            return web.Response(
                body=response.body, status=response.status, content_type=response.content_type
            )

        app = web.Application()
        app.add_routes([web.get("/-/served", answer)])
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return str(server.make_url("/"))

    yield start_server
    for server in servers:
        await server.close()


@pytest.fixture
def fetch(ledger: Ledger, start: Start) -> Fetch:  # which enters the run
    """Asks the servers behind URLs for the run r1."""

    async def fetch_from(*urls: str) -> ServedTotal | None:
        return await ServedCounter(NamedServers(urls), ledger).fetch("r1")

    return fetch_from


async def test_what_all_servers_counted_is_summed_up(start: Start, fetch: Fetch) -> None:
    """A slash at the end of a URL makes no difference."""
    first = await start(web.json_response({"served": 3}))
    second = await start(web.json_response({"served": 4}))
    assert await fetch(first, second.rstrip("/")) == ServedTotal(7, [])


async def test_counts_that_servers_share_are_taken_once(start: Start, fetch: Fetch) -> None:
    """Each of them tells the sum."""
    shares = [await start(web.json_response({"served": 3, "store": "a"})) for _ in range(3)]
    others = [
        await start(web.json_response({"served": 4, "store": "b"})),
        await start(web.json_response({"served": 5})),
    ]
    assert await fetch(*shares, *others) == ServedTotal(12, [])


async def test_the_size_of_each_server_process_is_told(start: Start, fetch: Fetch) -> None:
    """Servers that know it tell it, also several of one store."""
    answer = {"served": 3, "store": "a", "processes": [{"pid": 7, "peak_rss_mb": 20.123}]}
    urls = [await start(web.json_response(answer)) for _ in range(2)]
    urls.append(await start(web.json_response({"served": 4})))
    sizes = [ProcessSummary(name=f"server-{number}", peak_mb=20.1) for number in (1, 2)]
    assert await fetch(*urls) == ServedTotal(7, sizes)


async def test_without_servers_nothing_is_known(fetch: Fetch) -> None:
    """Unknown is not the same as nothing served."""
    assert await fetch() is None


@pytest.mark.parametrize(
    "answer",
    [
        lambda: web.Response(status=500),
        lambda: web.Response(text="no JSON"),
        lambda: web.Response(text="no JSON", content_type="application/json"),
        lambda: web.json_response({"other": 4}),
        lambda: web.json_response({"served": "many"}),
        lambda: web.json_response({"served": None}),
        lambda: web.json_response([4]),
    ],
)
async def test_nothing_is_known_when_a_server_does_not_say(
    start: Start, fetch: Fetch, answer: Callable[[], web.Response], caplog: pytest.LogCaptureFixture
) -> None:
    """A part of the count would be taken for all of it."""
    urls = [await start(web.json_response({"served": 3})), await start(answer())]
    assert await fetch(*urls) is None
    assert "the delay servers did not report their counts" in caplog.text


async def test_nothing_is_known_when_a_server_is_gone(
    start: Start, fetch: Fetch, unused_tcp_port: int
) -> None:
    """A pod may have left."""
    urls = [await start(web.json_response({"served": 3})), f"http://127.0.0.1:{unused_tcp_port}"]
    assert await fetch(*urls) is None


async def test_nothing_is_known_when_a_store_that_was_seen_does_not_answer_any_more(
    start: Start, fetch: Fetch, ledger: Ledger
) -> None:
    """A server that took the place of another one does not have its counts."""
    url = await start(web.json_response({"served": 3, "store": "new"}))
    change(ledger, record_servers, "r1", ["new"], 1.0)
    assert await fetch(url) == ServedTotal(3, [])
    change(ledger, record_servers, "r1", ["old"], 2.0)
    assert await fetch(url) is None


async def test_a_server_that_came_later_counts_as_well(start: Start, fetch: Fetch, ledger: Ledger) -> None:
    """It need not have been seen before."""
    urls = [await start(web.json_response({"served": 3, "store": store})) for store in ("a", "b")]
    change(ledger, record_servers, "r1", ["a"], 1.0)
    assert await fetch(*urls) == ServedTotal(6, [])


async def test_nothing_is_known_when_nobody_can_say_where_the_servers_are(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """Kubernetes may not answer."""
    change(ledger, create_run, "r1", Spec(requests=10), 1.0)

    class Lost:
        is_fixed = False

        async def find(self) -> Sequence[Address]:
            raise NotFoundError("GET /pods: 403 Forbidden")

    assert await ServedCounter(Lost(), ledger).fetch("r1") is None
    assert "GET /pods: 403 Forbidden" in caplog.text


async def test_each_address_of_a_name_is_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A headless Service has one for each pod, in two families if the cluster has them; one is enough."""

    def resolve(host: str, port: int, *_: object) -> list[tuple[Any, ...]]:
        assert (host, port) == ("servers", 8080)
        ips = [(socket.AF_INET6, "fd00::1"), (socket.AF_INET, "10.0.0.1"), (socket.AF_INET, "10.0.0.2")]
        return [(family, socket.SOCK_STREAM, 6, "", (ip, port)) for family, ip in ips]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    servers = NamedServers(["http://servers:8080/"])
    assert not servers.is_fixed
    assert await servers.find() == [
        Address("http://10.0.0.1:8080", "servers:8080"),
        Address("http://10.0.0.2:8080", "servers:8080"),
    ]


@pytest.mark.parametrize(
    ("url", "servers"),
    [
        ("http://127.0.0.1:8080", "one"),
        ("http://[::1]:8080", "one"),
        ("http://localhost:8080", "one"),
        ("http://servers:8080", "any"),
        ("http://servers.oku.svc", "any"),
    ],
)
def test_an_ip_address_is_one_server(url: str, servers: str) -> None:
    """A name may have any number behind it."""
    assert is_one_server(url) == (servers == "one")


async def test_what_is_asked_by_tls_is_asked_by_name() -> None:
    """A certificate is for a name."""
    assert await NamedServers(["https://servers:1"]).find() == [Address("https://servers:1", "servers:1")]
