"""Asks targets with each client: engines and `Http` in this process, Locust's users in their host."""

import asyncio
import contextlib
import datetime as dt
import json
import ssl
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trustme
import uvloop
from tests.kit.clients.odd_target import ClientKind, ClientResult, OddTarget
from tests.kit.clients.target_server import TargetPort, TargetServer
from tests.kit.http2.server import Http2Server
from tests.kit.scenarios.http_bench import HttpBench
from tests.kit.servers.certificates import build_server_tls
from tests.kit.workers.engine_worker import EngineWorker
from tests.kit.workers.locust_bench import LocustBench

from oku import RequestError
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.spec.engine_choice import choose_engine
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.check import ExpectedStatus, JsonValue
from oku_core.spec.values.url import Url

if TYPE_CHECKING:
    from oku.http.call import RequestOptions

ENGINES = {
    ClientKind.AIOHTTP: Engine.AIOHTTP,
    ClientKind.HTTPTOOLS: Engine.HTTPTOOLS,
    ClientKind.NGHTTP2: Engine.NGHTTP2,
}
MOST_REDIRECTS = {
    ClientKind.AIOHTTP: 10,
    ClientKind.HTTP: 10,
    ClientKind.HTTP_USER: 30,
    ClientKind.FAST_HTTP_USER: 30,
}
_PATIENCE_S, _LOCUST_PATIENCE_S, _SHORT_S = 20.0, 6.0, 0.6
_USERS = 24
DOTTED = "dotted.example."
"""A name that leads to this machine, as it may stand in a URL."""
_EXPECTED = (ExpectedStatus("2xx"), ExpectedStatus("3xx"))
_LOCUSTFILE = """
    import json
    import socket

    import gevent.socket
    from locust import {kind}, task

    def find(host, *args, known=socket.getaddrinfo, **options):
        return known("127.0.0.1" if host == {dotted!r} else host, *args, **options)

    socket.getaddrinfo = gevent.socket.getaddrinfo = find
    ROWS = json.loads({rows!r})

    class Visitor({kind}):
        @task
        def visit(self):
            row = ROWS[self.oku.index]
            self.client.{jar}.clear()
            self.client.{hang_up}()
            options = {{"name": row["name"]}}
            if row["body"]:
                options["data"] = row["body"]
            if not row["reads_json"]:
                self.client.request(row["method"], row["url"], **options)
                return
            with self.client.get(row["url"], catch_response=True, **options) as response:
                try:
                    response.json()["a"]
                except ValueError:
                    response.failure("no JSON at /a")
    """


class Asking:
    """Has an authority, and asks.

    Args:
        folder: for files.
        targets: all of them, by their names.

    Attributes:
        chosen: the engine that a spec of each target gets if it names none.
    """

    def __init__(self, folder: Path, targets: Mapping[str, OddTarget]) -> None:
        self._folder = folder
        self._targets = targets
        authority = trustme.CA()
        self._cacert = folder / "ca.pem"
        authority.cert_pem.write_to_path(self._cacert)
        self._contexts = _build_contexts(authority, folder)
        self.chosen: dict[str, Engine] = {}

    async def ask_all(self) -> dict[ClientKind, dict[str, ClientResult]]:
        """Ask with all clients at the same time: they mostly wait."""
        answers = await asyncio.gather(*map(self.ask, ClientKind))
        return dict(zip(ClientKind, answers, strict=True))

    async def ask(self, client: ClientKind) -> dict[str, ClientResult]:
        """Ask each target that a client can ask once."""
        targets = {name: each for name, each in self._targets.items() if client in each.clients}
        server = TargetServer({name: each.replies for name, each in targets.items()}, self._contexts)
        try:
            if client in ENGINES:
                return await self._ask_with_engine(client, targets, server)
            if client is ClientKind.HTTP:
                return await asyncio.to_thread(_run_as_in_a_host, self._ask_with_http(targets, server))
            return await self._ask_with_locust(client, targets, server)
        finally:
            server.close()

    def build_fields(self, target: OddTarget, server: TargetServer, **others: Any) -> dict[str, Any]:
        """What a spec says of the connections to a target."""
        is_proxied = target.port is TargetPort.PROXY
        proxy = Url(f"http://127.0.0.1:{server.ports[TargetPort.PROXY]}") if is_proxied else None
        return {"cacert": str(self._cacert), "concurrency": 1, "proxy": proxy, **others}

    async def _ask_with_engine(
        self, client: ClientKind, targets: Mapping[str, OddTarget], server: TargetServer
    ) -> dict[str, ClientResult]:
        answers = {}
        worker = EngineWorker()
        try:
            for name, target in targets.items():
                follows = {"max_redirects": MOST_REDIRECTS.get(client, 0), "cookies": True}
                url = target.build_url(name, server.ports)
                http2 = None
                if client is ClientKind.NGHTTP2 and target.http2 is not None:
                    tls = self._contexts[TargetPort.TLS] if url.startswith("https") else None
                    http2 = Http2Server(target.http2, tls=tls)
                    await http2.start()
                    url = target.build_url(name, dict.fromkeys(TargetPort, http2.port))
                spec = Spec(
                    urls=(Url(url),),
                    engine=ENGINES[client],
                    http2=client is ClientKind.NGHTTP2,
                    method=target.method,
                    body=target.body or None,
                    expect_status=_EXPECTED,
                    expect_json=(JsonValue("/a=1"),) if target.reads_json else (),
                    timeout_s=_choose_timeout_s(target),
                    **self.build_fields(target, server, **(follows if target.may_follow else {})),
                )
                if client is ClientKind.AIOHTTP:
                    self.chosen[name] = choose_engine(msgspec.structs.replace(spec, engine=None)).engine
                part = (await worker.run(spec, 1)).part
                reasons = [each.reason for each in part.reasons]
                answers[name] = _read(part.outcomes, reasons, part.statuses, server.list_asked(name))
                if http2 is not None:
                    answers[name] = answers[name]._replace(asked=_list_asked(http2, name))
                    await http2.end()
        finally:
            worker.close()
        return answers

    async def _ask_with_http(
        self, targets: Mapping[str, OddTarget], server: TargetServer
    ) -> dict[str, ClientResult]:
        answers = {}
        for name, target in targets.items():
            fields = self.build_fields(target, server, timeout_s=_choose_timeout_s(target))
            bench = HttpBench(**fields)
            options: RequestOptions = {"expect": "2xx,3xx"}
            if target.body:
                options["data"] = target.body.encode()
            call = bench.begin().request(target.method, target.build_url(name, server.ports), **options)
            with contextlib.suppress(RequestError):
                await (call.json("/a") if target.reads_json else call)
            [counted] = bench.read()
            bench.close()
            asked = server.list_asked(name)
            answers[name] = ClientResult(counted.outcome, counted.reason, counted.status, asked)
        return answers

    async def _ask_with_locust(
        self, client: ClientKind, targets: Mapping[str, OddTarget], server: TargetServer
    ) -> dict[str, ClientResult]:
        """In two hosts: the proxy is one of the spec."""
        answers = {}
        for is_proxied in (False, True):
            chosen = {
                name: each for name, each in targets.items() if (each.port is TargetPort.PROXY) is is_proxied
            }
            rows = [
                {
                    "name": name, "url": each.build_url(name, server.ports), "method": each.method,
                    "body": each.body, "reads_json": each.reads_json,
                }
                for name, each in chosen.items()
            ]  # fmt: skip
            if not rows:
                continue
            is_requests = client is ClientKind.HTTP_USER
            source = _LOCUSTFILE.format(
                kind=client.value,
                jar="cookies" if is_requests else "cookiejar",
                hang_up="close" if is_requests else "client.clientpool.close",
                dotted=DOTTED,
                rows=json.dumps(rows),
            )
            fields = self.build_fields(
                next(iter(chosen.values())), server, timeout_s=_LOCUST_PATIENCE_S, concurrency=_USERS
            )
            folder = self._folder / f"{client}-{is_proxied}"
            folder.mkdir()
            async with LocustBench(folder, source, "http://127.0.0.1:9", **fields) as bench:
                execution = await bench.run(len(rows))
            for name, target in chosen.items():
                tally = execution.inner.get(("", f"{target.method} {name}"))
                if tally is None:
                    answers[name] = ClientResult("not counted", "", 0, server.list_asked(name))
                    continue
                reasons = [each.reason for each in tally.failures.build_reasons()]
                statuses = {str(status): count for status, count in tally.statuses.items()}
                answers[name] = _read(tally.outcomes, reasons, statuses, server.list_asked(name))
        return answers


def _run_as_in_a_host(asking: Coroutine[Any, Any, dict[str, ClientResult]]) -> dict[str, ClientResult]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asking)


def with_limits(result: ClientResult, target: OddTarget, client: ClientKind) -> ClientResult:
    """An result of the table with the limits of a client in it: `{timeout}` and `{most}`."""
    timeout_s = _LOCUST_PATIENCE_S if client.value.endswith("User") else _choose_timeout_s(target)
    limits = {"timeout": f"{timeout_s:g}s", "most": MOST_REDIRECTS.get(client)}
    return result._replace(
        reason=result.reason.format(**limits),
        asked=tuple(asked.replace("{most}", str(limits["most"])) for asked in result.asked),
    )


def resolve_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the event loops of engines know the name with the dot."""
    resolve = uvloop.Loop.getaddrinfo

    async def find(loop: uvloop.Loop, host: str, *args: Any, **options: Any) -> Any:
        return await resolve(loop, "127.0.0.1" if host == DOTTED else host, *args, **options)

    monkeypatch.setattr(uvloop.Loop, "getaddrinfo", find)


def _choose_timeout_s(target: OddTarget) -> float:
    return _SHORT_S if target.result.outcome == Outcome.TIMEOUT else _PATIENCE_S


def _read(
    outcomes: list[int], reasons: list[str], statuses: Mapping[str, int], asked: tuple[str, ...]
) -> ClientResult:
    [outcome] = [each for each, count in zip(OUTCOMES, outcomes, strict=True) if count]
    status = next((int(each) for each in statuses), 0)
    return ClientResult(str(outcome), next(iter(reasons), ""), status, asked)


def _list_asked(server: Http2Server, name: str) -> tuple[str, ...]:
    return tuple(f"{each.method} /{each.target.partition(f'/{name}/')[2]}" for each in server.requests)


def _build_contexts(authority: trustme.CA, folder: Path) -> dict[TargetPort, ssl.SSLContext]:
    yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    expired = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", not_after=yesterday).configure_cert(expired)
    stranger = trustme.CA()
    old = build_server_tls(authority, "127.0.0.1")
    old.set_alpn_protocols(["http/1.1"])
    return {
        TargetPort.TLS: build_server_tls(authority, "127.0.0.1", "dotted.example"),
        TargetPort.UNUSED_TLS: build_server_tls(authority, "127.0.0.1"),
        TargetPort.OLD_TLS: old,
        TargetPort.EXPIRED: expired,
        TargetPort.OTHER_NAME: build_server_tls(authority, "other.example"),
        TargetPort.SELF_SIGNED: _build_self_signed(stranger, folder / "self-signed.pem"),
        TargetPort.UNKNOWN_AUTHORITY: build_server_tls(stranger, "127.0.0.1"),
    }


def _build_self_signed(authority: trustme.CA, path: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    path.write_bytes(authority.private_key_pem.bytes() + authority.cert_pem.bytes())
    context.load_cert_chain(path)
    return context
