"""What a spec says of requests reaches the clients of users; what the locustfile says itself goes first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import trustme
from tests.kit.servers.certificates import Certificates, build_server_tls
from tests.kit.servers.hostile_server import HostileServer
from tests.kit.servers.proxy import Proxy
from tests.kit.servers.site import answer_by_path
from tests.kit.workers.locust_bench import LocustBench, count_requests

from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url
from oku_workers.engines.contract.engine_protocol import EngineError

Build = Callable[..., LocustBench]
KINDS = pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])


def visit(kind: str, call: str = "self.client.get('/visit')", *lines: str) -> str:
    """A locustfile whose task makes one call."""
    more = "".join(f"    {line}\n" for line in lines)
    return f"""
from locust import {kind}, task

class Visitor({kind}):
{more}
    @task
    def visit(self):
        {call}
"""


@KINDS
async def test_headers_of_the_spec_are_sent(build: Build, site: HostileServer, kind: str) -> None:
    """With every request; one that the locustfile sends itself is its own."""
    source = visit(kind, "self.client.get('/visit', headers={'Team': 'mine'})")
    async with build(source, headers=(Header("Team: yours"), Header("Token: {literal:i}"))) as bench:
        await bench.run(5)
    sent = {(tuple(each.header("team")), tuple(each.header("token"))) for each in site.requests}
    assert sent == {(("mine",), ("{i}",))}


@KINDS
async def test_headers_with_one_name_are_all_sent(build: Build, site: HostileServer, kind: str) -> None:
    """In one line: neither client has two of one name."""
    texts = ("X-Tag: a", "Cookie: a=1", "x-tag: b", "cookie: b=2")
    async with build(visit(kind), headers=tuple(map(Header, texts))) as bench:
        await bench.run(5)
    sent = {(tuple(each.header("x-tag")), tuple(each.header("cookie"))) for each in site.requests}
    assert sent == {(("a, b",), ("a=1; b=2",))}


@KINDS
async def test_literal_text_of_the_base_url_is_sent(tmp_path: Path, site: HostileServer, kind: str) -> None:
    """As it is, in whatever way a client writes braces."""
    async with LocustBench(tmp_path, visit(kind), f"{site.url}/{{literal:i}}") as bench:
        await bench.run(5)
    assert {unquote(each.target) for each in site.requests} == {"/{i}/visit"}


@KINDS
async def test_the_limit_of_a_request_is_the_one_of_the_spec(build: Build, kind: str) -> None:
    """Locust itself waits for a minute, or for ever."""
    async with build(visit(kind, "self.client.get('/slow/2', name='it')"), timeout_s=0.3) as bench:
        execution = await bench.run(5)
    assert count_requests(execution) == {"GET it": {"timeout": 5}}


@pytest.mark.parametrize(
    "source",
    [
        visit("HttpUser", "self.client.get('/slow/0.6', name='it', timeout=5)"),
        visit("FastHttpUser", "self.client.get('/slow/0.6', name='it')", "network_timeout = 5.0"),
    ],
)
async def test_a_locustfile_may_have_limits_of_its_own(build: Build, source: str) -> None:
    """They go before the one of the spec."""
    async with build(source, timeout_s=0.3) as bench:
        execution = await bench.run(5)
    assert count_requests(execution) == {"GET it": {"ok": 5}}


@KINDS
async def test_an_authority_of_the_spec_is_trusted(tmp_path: Path, kind: str) -> None:
    """Its certificate comes along; servers of others are not."""
    certificates = Certificates(tmp_path)
    trusted = HostileServer(answer_by_path, tls=certificates.server)
    other = HostileServer(answer_by_path, tls=build_server_tls(trustme.CA(), "127.0.0.1"))
    await trusted.start()
    await other.start()
    source = visit(kind, f"self.client.get('/visit'); self.client.get('{other.url}/', name='other')")
    async with LocustBench(tmp_path, source, trusted.url, cacert=certificates.cacert) as bench:
        execution = await bench.run(5)
    await trusted.end()
    await other.end()
    assert count_requests(execution) == {"GET /visit": {"ok": 5}, "GET other": {"connect_error": 5}}


@KINDS
async def test_a_certificate_of_the_spec_is_shown(tmp_path: Path, kind: str) -> None:
    """To a server that asks for it."""
    certificates = Certificates(tmp_path)
    tls = build_server_tls(certificates.authority, "127.0.0.1", clients=certificates.authority)
    server = HostileServer(answer_by_path, tls=tls)
    await server.start()
    files: dict[str, Any] = {
        "cacert": certificates.cacert,
        "cert": certificates.cert,
        "key": certificates.key,
    }
    async with LocustBench(tmp_path, visit(kind), server.url, **files) as bench:
        execution = await bench.run(5)
    await server.end()
    assert count_requests(execution) == {"GET /visit": {"ok": 5}}


async def test_certificates_are_checked_unless_told_otherwise(tmp_path: Path) -> None:
    """By `HttpUser`; Locust's `FastHttpUser` never checks them by itself."""
    server = HostileServer(answer_by_path, tls=Certificates(tmp_path).server)
    await server.start()
    async with LocustBench(tmp_path, visit("HttpUser"), server.url) as bench:
        checked = await bench.run(5)
    async with LocustBench(tmp_path, visit("HttpUser"), server.url, insecure=True) as bench:
        unchecked = await bench.run(5)
    async with LocustBench(tmp_path, visit("FastHttpUser"), server.url) as bench:
        fast = await bench.run(5)
    await server.end()
    assert count_requests(checked) == {"GET /visit": {"connect_error": 5}}
    assert count_requests(unchecked) == count_requests(fast) == {"GET /visit": {"ok": 5}}


async def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    """Before any user begins."""
    certificates = Certificates(tmp_path)
    with pytest.raises(EngineError, match=r"cacert .* cannot be used"):
        async with LocustBench(tmp_path, visit("HttpUser"), "https://a", cacert=certificates.nonsense):
            pass


@KINDS
async def test_a_proxy_of_the_spec_is_asked(build: Build, site: HostileServer, kind: str) -> None:
    """For every request of every user."""
    proxy = Proxy()
    await proxy.start()
    async with build(visit(kind), proxy=Url(f"http://{proxy.authority}")) as bench:
        execution = await bench.run(5)
    await proxy.end()
    assert count_requests(execution) == {"GET /visit": {"ok": 5}}
    assert proxy.asked
    assert all(site.url.removeprefix("http://") in line for line in proxy.asked)
