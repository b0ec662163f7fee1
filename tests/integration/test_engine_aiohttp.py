"""What the aiohttp engine alone can do: proxies, redirections, cookies."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.kit.servers.certificates import build_server_tls
from tests.kit.servers.hostile_server import (
    Exchange,
    HostileServer,
    Request,
    Script,
    Serve,
    always,
    build_response,
)
from tests.kit.servers.proxy import Proxy
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.request_content import Header, parse_headers
from oku_core.spec.values.url import Url

OK = build_response(body=b"hi")


def build_spec(url: str, **changes: Any) -> Spec:
    """What to send, with this engine."""
    fields: dict[str, Any] = {"concurrency": 2, "timeout_s": 5.0}
    return Spec(urls=(Url(url),), engine=Engine.AIOHTTP, **(fields | changes))


@pytest.fixture
async def open_proxy() -> AsyncIterator[Callable[..., Awaitable[Proxy]]]:
    """Starts proxies that outlive the worker's requests."""
    proxies: list[Proxy] = []

    async def start() -> Proxy:
        proxies.append(Proxy())
        await proxies[-1].start()
        return proxies[-1]

    yield start
    for proxy in proxies:
        await proxy.end()


async def test_plain_requests_through_a_proxy(
    worker: EngineWorker, serve: Serve, open_proxy: Callable[..., Awaitable[Proxy]]
) -> None:
    """The proxy is asked for the whole URL, and the target gets each request once."""
    server, proxy = await serve(always(OK)), await open_proxy()
    spec = build_spec(f"{server.url}/{{i}}", proxy=Url(f"http://me:secret@{proxy.authority}"))

    account = await worker.run(spec, 20)

    assert count(account) == {"ok": 20}
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(20))
    assert {line.split(" ")[1].rpartition("/")[0] for line in proxy.asked} == {server.url}
    assert set(proxy.credentials) == {"Basic bWU6c2VjcmV0"}


async def test_tls_through_a_proxy(
    worker: EngineWorker,
    serve: Serve,
    open_proxy: Callable[..., Awaitable[Proxy]],
    tmp_path: Path,
) -> None:
    """The proxy makes a tunnel, and the certificate is checked all the same."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = await serve(always(OK), tls=build_server_tls(authority, "127.0.0.1"))
    proxy = await open_proxy()
    spec = build_spec(f"{server.url}/{{i}}", proxy=Url(f"http://{proxy.authority}"))

    refused = await worker.run(spec, 5)
    trusted = await worker.run(
        build_spec(spec.urls[0], proxy=spec.proxy, cacert=str(tmp_path / "ca.pem")), 20
    )

    assert count(refused) == {"connect_error": 5}
    assert count(trusted) == {"ok": 20}
    assert set(proxy.asked) == {f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"}
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(20))


async def test_a_proxy_that_is_not_there(worker: EngineWorker, serve: Serve) -> None:
    """The engine does not fall back on asking the target."""
    server = await serve(always(OK))

    account = await worker.run(build_spec(server.url, proxy=Url("http://127.0.0.1:1")), 5)

    assert count(account) == {"connect_error": 5}
    assert server.received == 0


def redirect(times: int, status: str = "302 Found") -> Script:
    """Sends each request on to the next path, `/7` to `/7/1` to `/7/2`, so many times."""

    async def script(exchange: Exchange) -> None:
        first, _, step = exchange.request.target[1:].partition("/")
        done = int(step or 0)
        if done < times:
            await exchange.send(build_response(status, b"on", f"Location: /{first}/{done + 1}"))
        else:
            await exchange.send(build_response("200 OK", b"there"))

    return script


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
async def test_redirections_are_followed(worker: EngineWorker, serve: Serve, status: str) -> None:
    """As many as the spec allows are followed; the request counts once, with its last response."""
    server = await serve(redirect(3, status))

    account = await worker.run(build_spec(f"{server.url}/{{i}}", max_redirects=3), 10)

    assert count(account) == {"ok": 10}
    assert (account.part.statuses, account.part.bytes_received) == ({"200": 10}, 50)
    assert server.received == 40


async def test_one_redirection_more_than_allowed(worker: EngineWorker, serve: Serve) -> None:
    """It is not followed, and the request ends as a `protocol_error`."""
    server = await serve(redirect(3))

    account = await worker.run(build_spec(f"{server.url}/{{i}}", max_redirects=2), 10)

    assert count(account) == {"protocol_error": 10}
    assert server.received == 30


async def test_redirections_are_answers_by_default(worker: EngineWorker, serve: Serve) -> None:
    """Nothing is sent that nobody asked for."""
    server = await serve(redirect(3))

    account = await worker.run(build_spec(f"{server.url}/{{i}}"), 10)

    assert (account.part.statuses, server.received) == ({"302": 10}, 10)


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/", "http://[::1", "mailto:nobody"])
async def test_a_redirection_to_nowhere(worker: EngineWorker, serve: Serve, location: str) -> None:
    """The request was sent and answered, with what makes no sense."""
    server = await serve(always(build_response("302 Found", b"", f"Location: {location}")))

    account = await worker.run(build_spec(server.url, max_redirects=3), 10)

    assert count(account) == {"protocol_error": 10}
    assert server.received == 10


async def test_a_redirection_without_a_place(worker: EngineWorker, serve: Serve) -> None:
    """It is the last response."""
    server = await serve(always(build_response("302 Found")))

    account = await worker.run(build_spec(server.url, max_redirects=3), 10)

    assert (account.part.statuses, server.received) == ({"302": 10}, 10)


async def test_the_limit_is_that_of_all_redirections(worker: EngineWorker, serve: Serve) -> None:
    """Time runs from the first request to the last response."""
    server: HostileServer = await serve(redirect(100))
    script = server.script

    async def slowly(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 103 Early Hints\r\n\r\n", b"", pause_s=0.05)
        await script(exchange)

    server.script = slowly

    account = await worker.run(build_spec(server.url + "/{i}", max_redirects=100, timeout_s=0.4), 2)

    assert count(account) == {"timeout": 2}


@pytest.mark.parametrize("cookies", [True, False])
async def test_cookies(worker: EngineWorker, serve: Serve, *, cookies: bool) -> None:
    """They are sent back if the spec says so, and otherwise never."""

    async def script(exchange: Exchange) -> None:
        target = exchange.request.target
        await exchange.send(build_response("200 OK", b"", f"Set-Cookie: last={target[1:]}; Path=/"))

    server = await serve(script)

    account = await worker.run(build_spec(f"{server.url}/{{i}}", cookies=cookies, concurrency=1), 3)

    assert count(account) == {"ok": 3}
    sent = [request.header("cookie") for request in server.requests]
    assert sent == ([[], ["last=0"], ["last=1"]] if cookies else [[], [], []])


AUTHORIZATION = Header("Authorization: Bearer secret")


async def test_cookies_stand_beside_those_of_the_spec(worker: EngineWorker, serve: Serve) -> None:
    """Of two with one name, the server's counts; values go back as they came."""
    cookie = 'Set-Cookie: last="{1}"==; Path=/'
    server = await serve(always(build_response("200 OK", b"", cookie)))
    headers = parse_headers(["Cookie: lang=en; last=0", "X: 1"])

    account = await worker.run(build_spec(f"{server.url}/", cookies=True, concurrency=1, headers=headers), 2)

    assert count(account) == {"ok": 2}
    assert [request.header("cookie") for request in server.requests] == [
        ["lang=en; last=0"],
        ['lang=en; last="{1}"=='],
    ]
    assert [request.header("x") for request in server.requests] == [["1"], ["1"]]


SECRETS = parse_headers(["Cookie: session=secret", "X-Api-Key: secret", "X-Index: secret-{i}"])


def is_told(request: Request) -> bool:
    """Whether anything that only the origin of the spec may know is in a request."""
    return "secret" in repr(request) or "bWU6" in repr(request) or request.body != b""


async def redirect_to(serve: Serve, place: str, status: str, **settings: Any) -> HostileServer:
    """A server that sets a cookie, redirects `/N` within itself first, and then to another place."""

    async def script(exchange: Exchange) -> None:
        number = exchange.request.target[1:]
        location = f"{place}/{number}" if number.endswith("x") else f"/{number}x"
        await exchange.send(
            build_response(status, b"", f"Location: {location}", "Set-Cookie: own=secret; Path=/")
        )

    return await serve(script, **settings)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_redirection_to_another_origin_carries_nothing_of_the_spec(
    worker: EngineWorker, serve: Serve, status: str, name: str
) -> None:
    """Credentials, headers and cookies stay behind, even on the way back; within the origin they are sent."""

    async def back(exchange: Exchange) -> None:
        await exchange.send(build_response(status, b"", f"Location: {home.url}/back/x"))

    async def there(exchange: Exchange) -> None:
        await (back if exchange.request.target == "/0x" else always(OK))(exchange)

    other = await serve(there, host=name)
    home = await redirect_to(serve, f"http://{name}:{other.port}", status)
    script = home.script

    async def script_with_end(exchange: Exchange) -> None:
        await (always(OK) if exchange.request.target == "/back/x" else script)(exchange)

    home.script = script_with_end
    url = home.url.replace("://", "://me:secret@") + "/{i}"
    spec = build_spec(url, max_redirects=4, cookies=True, headers=SECRETS)

    account = await worker.run(spec, 10)

    assert count(account) == {"ok": 10}
    assert len(other.requests) == 10
    assert not any(is_told(request) for request in other.requests)
    returned = [request for request in home.requests if request.target == "/back/x"]
    assert [request.header("x-api-key") for request in returned] == [[]]
    within = [request for request in home.requests if request.target != "/back/x"]
    assert len(within) == 20
    for request in within:
        assert request.header("authorization") == ["Basic bWU6c2VjcmV0"]
        assert (request.header("x-api-key"), len(request.header("x-index"))) == (["secret"], 1)


async def test_an_authorization_of_the_spec_stays_at_home(worker: EngineWorker, serve: Serve) -> None:
    """It does so whichever way it was given."""
    other = await serve(always(OK))
    home = await redirect_to(serve, other.url, "307 Temporary")

    spec = build_spec(f"{home.url}/{{i}}", max_redirects=2, headers=(AUTHORIZATION, *SECRETS))

    account = await worker.run(spec, 10)

    assert count(account) == {"ok": 10}
    assert all(request.header("authorization") == ["Bearer secret"] for request in home.requests)
    assert not any(is_told(request) for request in other.requests)


@pytest.mark.parametrize(
    ("method", "status", "is_followed"),
    [
        ("POST", "301 Moved", True),
        ("POST", "302 Found", True),
        ("POST", "303 See", True),
        ("PUT", "303 See", True),
        ("POST", "307 Temporary", False),
        ("POST", "308 Permanent", False),
        ("PUT", "302 Found", False),
        ("PATCH", "301 Moved", False),
    ],
)
async def test_a_body_does_not_go_to_another_origin(
    worker: EngineWorker, serve: Serve, method: str, status: str, *, is_followed: bool
) -> None:
    """What becomes a GET is followed without it; what would need it is a `protocol_error`."""
    other = await serve(always(OK))
    home = await redirect_to(serve, other.url, status)
    spec = build_spec(
        f"{home.url}/{{i}}",
        max_redirects=2,
        method=method,
        body='{"secret": {i}}',
        headers=(Header("Content-Type: application/json"),),
    )

    account = await worker.run(spec, 10)

    assert count(account) == ({"ok": 10} if is_followed else {"protocol_error": 10})
    assert {request.method for request in other.requests} == ({"GET"} if is_followed else set())
    assert not any(is_told(request) or request.header("content-type") for request in other.requests)
    # Within the origin it is sent again, unless the redirection makes a GET of it.
    second = [request for request in home.requests if request.target.endswith("x")]
    assert all((request.body == b"") is is_followed for request in second)
    assert len(second) == 10


async def test_another_scheme_is_another_origin(worker: EngineWorker, serve: Serve, tmp_path: Path) -> None:
    """That holds from https to http on one host; a client certificate is for the spec's origin alone."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = build_server_tls(authority, "127.0.0.1")
    client = authority.issue_cert("client.example")
    client.private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    plain, other = await serve(always(OK)), await serve(always(OK), tls=tls)
    to_plain = await redirect_to(serve, plain.url, "302 Found", tls=tls)
    to_other = await redirect_to(serve, other.url, "302 Found", tls=tls)
    fields: dict[str, Any] = {
        "max_redirects": 2, "cookies": True, "headers": (AUTHORIZATION, *SECRETS),
        "cacert": str(tmp_path / "ca.pem")
    }  # fmt: skip

    for server, cert, outcome in (
        (to_plain, None, "ok"),
        (to_other, None, "ok"),
        (to_other, str(tmp_path / "client.pem"), "protocol_error"),
    ):
        account = await worker.run(build_spec(f"{server.url}/{{i}}", cert=cert, **fields), 5)
        assert count(account) == {outcome: 5}

    assert (plain.received, other.received) == (5, 5)
    assert not any(is_told(request) for request in plain.requests + other.requests)


async def test_cookies_go_back_to_the_origin_that_set_them(worker: EngineWorker, serve: Serve) -> None:
    """They do not go to another port of the same host, which a browser would send them to."""
    servers = [
        await serve(always(build_response("200 OK", b"", f"Set-Cookie: n{number}=1; Path=/")))
        for number in (0, 1)
    ]
    urls = tuple(Url(f"{server.url}/") for server in servers)
    spec = Spec(urls=urls, engine=Engine.AIOHTTP, cookies=True, concurrency=1, timeout_s=5.0)

    account = await worker.run(spec, 6)

    assert count(account) == {"ok": 6}
    for number, server in enumerate(servers):
        own = [f"n{number}=1"]
        assert [request.header("cookie") for request in server.requests] == [[], own, own]
