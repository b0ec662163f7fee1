from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from oku_coordinator.served import Served, ServedCounter
from oku_core.summary import ProcessSummary

Start = Callable[[web.Response], Awaitable[str]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts delay servers that answer one thing, for the run r1 and no other; gives the URL of each."""
    servers: list[TestServer] = []

    async def start_server(response: web.Response) -> str:
        async def answer(request: web.Request) -> web.Response:
            assert request.query["run"] == "r1"
            return response

        app = web.Application()
        app.add_routes([web.get("/-/served", answer)])
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return str(server.make_url("/"))

    yield start_server
    for server in servers:
        await server.close()


async def test_what_all_servers_counted_is_summed_up(start: Start) -> None:
    """With or without a slash at the end of their URLs."""
    first = await start(web.json_response({"served": 3}))
    second = await start(web.json_response({"served": 4}))
    assert await ServedCounter([first, second.rstrip("/")]).fetch("r1") == Served(7, [])


async def test_counts_that_servers_share_are_taken_once(start: Start) -> None:
    """Each of them tells the sum."""
    shares = [await start(web.json_response({"served": 3, "store": "a"})) for _ in range(3)]
    others = [
        await start(web.json_response({"served": 4, "store": "b"})),
        await start(web.json_response({"served": 5})),
    ]
    assert await ServedCounter([*shares, *others]).fetch("r1") == Served(12, [])


async def test_the_size_of_each_server_process_is_told(start: Start) -> None:
    """By those that know it."""
    first = await start(web.json_response({"served": 3, "processes": [{"pid": 7, "peak_rss_mb": 20.123}]}))
    second = await start(web.json_response({"served": 4}))
    served = await ServedCounter([first, second]).fetch("r1")
    assert served == Served(7, [ProcessSummary(name="server-1", peak_mb=20.1)])


async def test_without_servers_nothing_is_known() -> None:
    """Which is not the same as nothing served."""
    assert await ServedCounter([]).fetch("r1") is None


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
    start: Start, answer: Callable[[], web.Response], caplog: pytest.LogCaptureFixture
) -> None:
    """A part of the count would be taken for all of it."""
    urls = [await start(web.json_response({"served": 3})), await start(answer())]
    assert await ServedCounter(urls).fetch("r1") is None
    assert "the delay servers did not say what they served" in caplog.text


async def test_nothing_is_known_when_a_server_is_gone(start: Start, unused_tcp_port: int) -> None:
    """A pod may have left."""
    urls = [await start(web.json_response({"served": 3})), f"http://127.0.0.1:{unused_tcp_port}"]
    assert await ServedCounter(urls).fetch("r1") is None
