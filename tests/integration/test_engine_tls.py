"""TLS: whose certificates are accepted, which one is shown, and that all else is as without TLS."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest
from tests.kit.servers.certificates import Certificates, build_server_tls
from tests.kit.servers.hostile_server import (
    Exchange,
    HostileServer,
    Script,
    Serve,
    always,
    build_response,
    stall,
)
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url

OK = build_response(body=b"hi")
SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"
UNTIL_CLOSE = b"HTTP/1.0 200 OK\r\n\r\nhi"
MIB = 1 << 20


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made once: keys take their time."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


def build_spec(engine: Engine, url: str, **changes: Any) -> Spec:
    """What to send; nothing ends by its timeout."""
    fields: dict[str, Any] = {"concurrency": 4, "timeout_s": 20.0}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=engine, **(fields | changes))


async def test_an_authority_that_nobody_knows(
    engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates
) -> None:
    """Nothing is sent to a server whose certificate no authority of the system has signed."""
    server = await serve(always(OK), tls=files.server)

    account = await worker.run(build_spec(engine, server.url), 10)

    assert count(account) == {"connect_error": 10}
    assert server.received == 0


async def test_an_authority_that_the_spec_names(
    engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates
) -> None:
    """Its certificates are accepted, and connections are used again and again."""
    server = await serve(always(OK), tls=files.server)

    account = await worker.run(build_spec(engine, server.url, cacert=files.cacert), 500)

    assert count(account) == {"ok": 500}
    assert account.part.bytes_received == 1000
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(500))
    assert server.connections == 4


async def test_a_name_in_the_url(
    engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates
) -> None:
    """The server is told the name, and its certificate is checked for it."""
    tls = build_server_tls(files.authority, "localhost")
    told: list[str | None] = []
    tls.sni_callback = lambda _, name, __: told.append(name)
    server = await serve(always(OK), tls=tls)
    url = f"https://localhost:{server.port}"

    account = await worker.run(build_spec(engine, url, cacert=files.cacert, concurrency=1), 10)

    assert count(account) == {"ok": 10}
    assert told == ["localhost"]


@pytest.mark.parametrize("name", ["127.0.0.1", "other.example"])
async def test_insecure(
    engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates, name: str
) -> None:
    """Any certificate is accepted when the spec says so."""
    server = await serve(always(OK), tls=build_server_tls(files.authority, name))

    account = await worker.run(build_spec(engine, server.url, insecure=True), 10)

    assert count(account) == {"ok": 10}


async def test_a_server_that_wants_a_certificate(
    engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates
) -> None:
    """It gets that of the spec, from one file or from two; without one it refuses."""
    tls = build_server_tls(files.authority, "127.0.0.1", clients=files.authority)
    server = await serve(always(OK), tls=tls)

    async def run(**changes: str) -> dict[str, int]:
        return count(await worker.run(build_spec(engine, server.url, cacert=files.cacert, **changes), 20))

    assert "ok" not in await run()
    assert server.received == 0
    assert await run(cert=files.cert, key=files.key) == {"ok": 20}
    assert await run(cert=files.both) == {"ok": 20}
    assert server.received == 40


async def test_a_file_that_cannot_be_used(
    engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates
) -> None:
    """One line names it, no request is sent, and the worker goes on with the next spec."""
    server = await serve(always(OK))

    worker.overlook("cannot be carried out here")
    refused = await worker.run(build_spec(engine, server.url, cacert=files.missing), 10)

    assert re.fullmatch(f"cacert {files.missing} cannot be used: .+", refused.checkpoint.refusal)
    assert refused.checkpoint.done == 0
    assert worker.runner.lease_ids == []
    assert server.received == 0
    assert count(await worker.run(build_spec(engine, server.url), 10)) == {"ok": 10}


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_large_bodies(engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates) -> None:
    """They arrive in both directions, many records long."""
    server = await serve(always(build_response("200 OK", b"x" * 8 * MIB)), tls=files.server)
    body = "{i}" + "y" * 2 * MIB
    spec = build_spec(engine, server.url, cacert=files.cacert, method="POST", body=body, concurrency=2)

    account = await worker.run(spec, 8)

    assert count(account) == {"ok": 8}
    assert account.part.bytes_received == 8 * 8 * MIB
    assert sorted(request.body[:1] for request in server.requests) == [b"%d" % i for i in range(8)]
    assert {len(request.body) for request in server.requests} == {2 * MIB + 1}


@pytest.mark.parametrize(
    "parts", [(OK,), (OK[:-1], OK[-1:]), tuple(OK[at : at + 1] for at in range(len(OK)))]
)
async def test_responses_in_pieces(
    engine: Engine,
    worker: EngineWorker,
    serve: Serve,
    files: Certificates,
    parts: Sequence[bytes],
) -> None:
    """The borders of records are not those of messages."""
    server = await serve(always(*parts, pause_s=0.001), tls=files.server)

    account = await worker.run(build_spec(engine, server.url, cacert=files.cacert), 12)

    assert (count(account), account.part.bytes_received) == ({"ok": 12}, 24)


ENDS: dict[str, tuple[Script, str]] = {
    "close before any byte": (always(then="close"), "disconnected"),
    "reset before any byte": (always(then="reset"), "disconnected"),
    "close within the body": (always(SHORT, then="close"), "disconnected"),
    "reset within the body": (always(SHORT, then="reset"), "disconnected"),
    "close after a body without a length": (always(UNTIL_CLOSE, then="close"), "ok"),
    "reset after a body without a length": (always(UNTIL_CLOSE, then="reset"), "disconnected"),
    "another protocol": (always(b"220 mail.example ESMTP\r\n"), "protocol_error"),
}


@pytest.mark.parametrize("case", ENDS)
async def test_ends_of_connections(
    engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates, case: str
) -> None:
    """They mean what they mean without TLS."""
    script, outcome = ENDS[case]
    server = await serve(script, tls=files.server)

    account = await worker.run(build_spec(engine, server.url, cacert=files.cacert), 12)

    assert count(account) == {outcome: 12}
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(12))


async def test_a_stop_at_any_moment(
    engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates
) -> None:
    """Handshakes, requests and answers are cut off; what was sent is given back or accounted for."""
    # uvloop says so when a connection is given up in the moment in which its handshake ends; that is all.
    worker.overlook("Fatal error on SSL protocol")

    async def script(exchange: Exchange) -> None:
        await asyncio.sleep(0.002)
        await exchange.send(OK)

    server: HostileServer = await serve(script, tls=files.server)
    spec = build_spec(engine, server.url, cacert=files.cacert, concurrency=20)
    for sample in range(12):
        server.requests.clear()
        running = asyncio.ensure_future(worker.run(spec, 500, start=500 * sample))
        await asyncio.sleep(sample * 0.004)
        worker.stop(grace_s=0)
        account = await running
        await asyncio.sleep(0.02)  # what was cut off may still be on its way
        sent = {int(target[1:]) for target in server.targets}
        assert len(sent) == server.received
        assert set(range(account.start, account.done)) - set(account.given_back) <= sent
        assert sent <= set(range(account.start, account.done))


async def test_timeouts(engine: Engine, worker: EngineWorker, serve: Serve, files: Certificates) -> None:
    """They are what they are without TLS."""
    server = await serve(stall, tls=files.server)

    spec = build_spec(engine, server.url, cacert=files.cacert, concurrency=8, timeout_s=1.0)
    account = await worker.run(spec, 8)

    assert count(account) == {"timeout": 8}
    assert server.received == 8
