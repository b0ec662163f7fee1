"""Names that a real resolver looks up at a real DNS server, in a process that has no other."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.kit.requirement import miss
from tests.kit.servers.black_hole import black_hole
from tests.kit.servers.dns_server import DnsServer
from tests.kit.servers.hostile_server import Exchange, Serve, build_response
from tests.kit.workers.measured_worker import COMMAND, Measurement, measure

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url


@pytest.fixture
async def names() -> AsyncIterator[DnsServer]:
    """A DNS server; only root may have its port and give a process its own settings."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        miss("a DNS server for one process needs root and unshare")
    server = DnsServer(("127.0.0.2", "127.0.0.1"))
    try:
        await server.start()
    except OSError as error:
        miss(f"no DNS server can listen: {error}")
    yield server
    server.end()


async def hang_up(exchange: Exchange) -> None:
    """A connection for each request."""
    await exchange.send(build_response("200 OK", b"hi", "Connection: close"))
    exchange.hang_up()


async def request(names: DnsServer, folder: Path, engine: Engine, port: int, timeout_s: float) -> Measurement:
    """Forty requests to the name, two at a time."""
    spec = Spec(
        urls=(Url(f"http://several.example:{port}/{{i}}"),), engine=engine, concurrency=2, timeout_s=timeout_s
    )
    return await measure(spec, 40, command=names.build_command(folder, *COMMAND))


async def test_a_name_with_a_black_hole(
    engine: Engine, names: DnsServer, serve: Serve, tmp_path: Path
) -> None:
    """All requests are answered by the address that works."""
    server = await serve(hang_up)
    with black_hole("127.0.0.2", server.port):
        measurement = await request(names, tmp_path, engine, server.port, 10.0)

    assert measurement.outcomes == {"ok": 40}
    assert server.received == 40


async def test_a_lookup_that_takes_long(
    engine: Engine, names: DnsServer, serve: Serve, tmp_path: Path
) -> None:
    """It is asked for once; requests that it outlasts are timeouts, all others are answered."""
    names.addresses, names.delay_s = ("127.0.0.1",), 2.0
    server = await serve(hang_up)

    measurement = await request(names, tmp_path, engine, server.port, 1.5)

    assert set(measurement.outcomes) == {"timeout", "ok"}
    assert measurement.outcomes["ok"] >= 30
    assert len(names.asked) == 1
