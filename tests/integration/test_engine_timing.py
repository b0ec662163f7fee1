"""How the time of requests is split: connecting, TLS, the first byte, and the transfer, by both engines."""

from typing import Any

import pytest
from tests.kit.servers.certificates import Certificates
from tests.kit.servers.hostile_server import Exchange, Serve, always, build_response
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.accounting.measured_time import Time
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url

pytestmark = pytest.mark.alone

OK = build_response(body=b"hi")
PAUSE_US = 50_000


async def answer_in_two(exchange: Exchange) -> None:
    """The second half of the body comes 50 ms after all else."""
    await exchange.send(OK[:-1], OK[-1:], pause_s=PAUSE_US / 1e6)


async def answer_every_other_in_two(exchange: Exchange) -> None:
    """Those in between come in one piece."""
    if int(exchange.request.target[1:]) % 2:
        await exchange.send(OK)
    else:
        await answer_in_two(exchange)


async def cut_the_head(exchange: Exchange) -> None:
    """The head itself comes in two pieces, the last one with the body."""
    await exchange.send(OK[:9], OK[9:], pause_s=PAUSE_US / 1e6)


async def answer_half(exchange: Exchange) -> None:
    """The rest never comes."""
    await exchange.send(OK[:-1])
    exchange.hang_up()


async def end_by_closing(exchange: Exchange) -> None:
    """The body goes on until the server hangs up."""
    await exchange.send(b"HTTP/1.0 200 OK\r\n\r\nhi", b"", pause_s=PAUSE_US / 1e6)
    exchange.hang_up()


def build_spec(engine: Engine, url: str, **changes: Any) -> Spec:
    """Four requests at a time."""
    fields: dict[str, Any] = {"concurrency": 4, "timeout_s": 20.0}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=engine, **(fields | changes))


async def test_each_connection_is_timed_once(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Kept connections take no time to make, and without TLS there is no handshake."""
    server = await serve(always(OK))
    part = (await worker.run(build_spec(engine, server.url), 200)).part
    assert (
        (part.histogram(Time.CONNECT).total, part.histogram(Time.TLS).total)
        == (server.connections, 0)
        == (4, 0)
    )
    assert 0 < part.histogram(Time.CONNECT).max_us < part.histogram(Time.LATENCY).max_us


async def test_connections_that_are_not_kept_are_timed_with_each_request(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """Each request has one."""
    server = await serve(always(OK))
    spec = build_spec(engine, server.url, headers=(Header("Connection: close"),))
    part = (await worker.run(spec, 50)).part
    assert part.histogram(Time.CONNECT).total == server.connections == 50


async def test_tls_is_timed_apart_from_tcp(
    engine: Engine, worker: EngineWorker, serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both together are a part of the latency of the first requests."""
    files = Certificates(tmp_path_factory.mktemp("certificates"))
    server = await serve(always(OK), tls=files.server)
    part = (await worker.run(build_spec(engine, server.url, cacert=files.cacert), 200)).part
    assert part.histogram(Time.CONNECT).total == part.histogram(Time.TLS).total == server.connections == 4
    assert min(part.histogram(Time.CONNECT).min_us, part.histogram(Time.TLS).min_us) > 0
    assert (
        part.histogram(Time.CONNECT).sum_us + part.histogram(Time.TLS).sum_us
        < 4 * part.histogram(Time.LATENCY).max_us
    )


async def test_answers_in_several_pieces_have_a_first_byte_and_a_transfer(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """Both together are the latency; answers in one piece have nothing else to tell."""
    server = await serve(answer_every_other_in_two)
    part = (await worker.run(build_spec(engine, server.url), 40)).part
    assert (
        part.histogram(Time.SPLIT_LATENCY).total
        == part.histogram(Time.SPLIT_FIRST_BYTE).total
        == part.histogram(Time.TRANSFER).total
        == 20
    )
    assert (
        part.histogram(Time.SPLIT_LATENCY).sum_us
        == part.histogram(Time.SPLIT_FIRST_BYTE).sum_us + part.histogram(Time.TRANSFER).sum_us
    )
    assert part.histogram(Time.TRANSFER).min_us > PAUSE_US / 2
    assert part.histogram(Time.SPLIT_FIRST_BYTE).min_us < PAUSE_US / 2


@pytest.mark.parametrize("script", [cut_the_head, end_by_closing])
async def test_the_first_byte_may_be_one_of_the_head_and_the_last_one_the_end_of_the_connection(
    engine: Engine, worker: EngineWorker, serve: Serve, script: Any
) -> None:
    """Whatever comes first counts, and whatever completes the answer."""
    server = await serve(script)
    part = (await worker.run(build_spec(engine, server.url), 4)).part
    assert part.histogram(Time.TRANSFER).total == 4
    assert part.histogram(Time.TRANSFER).min_us > PAUSE_US / 2


async def test_one_that_is_not_answered_has_connected_all_the_same(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """Its first byte is not told, for it has no latency."""
    server = await serve(answer_half)
    account = await worker.run(build_spec(engine, server.url), 10)
    assert count(account) == {"disconnected": 10}
    assert (account.part.histogram(Time.CONNECT).total, account.part.histogram(Time.TRANSFER).total) == (
        10,
        0,
    )
