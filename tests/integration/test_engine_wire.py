"""For one spec and index every engine sends the same: targets see no difference between them."""

from typing import Any

import pytest
from tests.kit.http2.server import ServeHttp2
from tests.kit.servers.any_server import AnyExchange, AnyServer
from tests.kit.servers.hostile_server import Request, Serve
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import HTTP_ENGINES, Engine, Spec
from oku_core.spec.values.request_content import Header, parse_headers
from oku_core.spec.values.url import Url

TYPE = Header("Content-Type: a/b")
OTHERS = ["user-agent: mine", "ACCEPT: a/b", "Accept-Encoding: x", "Host: other:1"]
METHODS = ("HEAD", "TRACE", "OPTIONS", "PUT", "PATCH", "DELETE", "PURGE")
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing but a URL": ("", {}),
    "path and query": ("/a/../b//{i}?c={i}&d=%2F+", {}),
    "what must be encoded": ("/straße/a b|c?ü={i}", {}),
    "a user": ("/{i}", {"user": "me:secret@"}),
    "a user without a password": ("/{i}", {"user": "me@"}),
    "headers": ("/{i}", {"headers": parse_headers(["X-A: b", "X-A: {i}", "x-b:  c  ", "X-Empty:"])}),
    "headers of UTF-8": ("/{i}", {"headers": parse_headers("X-A: größe {i}")}),
    "headers in the place of Oku's": (
        "/{i}",
        {"headers": parse_headers(OTHERS)},
    ),
    "no body": ("/{i}", {"method": "POST"}),
    "an empty body": ("/{i}", {"method": "POST", "body": ""}),
    "a body": ("/{i}", {"method": "POST", "body": "größe={i}&%d{i}"}),
    "a body with its type": ("/{i}", {"method": "POST", "body": "{}", "headers": (TYPE,)}),
    "a body of GET": ("/{i}", {"body": "x{i}"}),
    "an empty body of GET": ("/{i}", {"body": ""}),
    **{method: ("/{i}", {"method": method}) for method in METHODS},
    **{f"{method} with a body": ("/{i}", {"method": method, "body": "x"}) for method in METHODS[2:]},
    "POST with a type of no body": ("/{i}", {"method": "POST", "headers": (TYPE,)}),
}  # fmt: skip


def describe(request: Request, authority: str) -> tuple[Any, ...]:
    """What means something: the order of headers counts among those of one name only."""
    named = ((name.lower(), value.replace(authority, "host")) for name, value in request.headers)
    headers = sorted(named, key=lambda header: header[0])
    return request.method, request.target, headers, request.body


async def answer(exchange: AnyExchange) -> None:
    """Answer well, to any method."""
    await exchange.respond()


@pytest.mark.parametrize("case", SPECS)
async def test_engines_send_the_same(
    worker: EngineWorker, serve: Serve, serve_http2: ServeHttp2, case: str
) -> None:
    """Request line, headers, repeated ones in their order, and body agree."""
    target, fields = SPECS[case]
    fields = dict(fields)
    user = fields.pop("user", "")
    servers: dict[bool, AnyServer] = {True: await serve_http2(answer), False: await serve(answer)}
    sent = []
    for engine in HTTP_ENGINES:
        server = servers[engine is Engine.NGHTTP2]
        server.requests.clear()
        url = server.url.replace("://", f"://{user}") + target
        spec = Spec(urls=(Url(url),), engine=engine, concurrency=1, timeout_s=5.0, **fields)
        assert count(await worker.run(spec, 3, start=8)) == {"ok": 3}
        sent.append([describe(request, server.url[7:]) for request in server.requests])

    assert sent[0] == sent[1] == sent[2]
    assert len(sent[0]) == 3
