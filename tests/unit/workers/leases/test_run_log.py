"""One line for each run: what an operator sees of a healthy worker."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.kit.workers.engines_in_memory import SPEC, Bench, build_lease, settle

from oku_core.accounting.outcome import TIMEOUT
from oku_core.messaging.order import Stop
from oku_core.spec.spec import Engine

_NAMED = msgspec.structs.replace(SPEC, name="checkout")


@pytest.fixture(autouse=True)
def _level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "oku_workers.leases.run_log")


def list_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged of runs since the last call."""
    records = [each for each in caplog.records if each.name == "oku_workers.leases.run_log"]
    caplog.clear()
    return [each.getMessage() for each in records]


async def work(bench: Bench, start: int, stop: int, run: str = "r1", **options: Any) -> None:
    """Carry out a lease, whose end is confirmed."""
    bench.take(build_lease(start, stop, run), **options)
    await settle()
    bench.engine.fill()
    await asyncio.sleep(1.0)
    await bench.engine.work()
    await asyncio.sleep(0.5)
    assert bench.runner.lease_ids == []


async def test_a_run_has_one_line_when_it_has_lost_its_turn(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """However many leases there were, and however often the coordinator says that it goes on."""
    for number in range(20):
        await work(bench, 10 * number, 10 * number + 10, spec=_NAMED)
        bench.runner.set_current_run("r1")
    assert list_lines(caplog) == []
    bench.runner.set_current_run("")
    [record] = caplog.records
    assert list_lines(caplog) == ["run r1 (checkout): 200 requests in 29.5 s: 200 ok"]
    fields = {"run": "r1", "run_name": "checkout", "requests": 200, "seconds": 29.5, "ok": 200}
    assert fields.items() <= record.__dict__.items()
    bench.runner.set_current_run("")
    await bench.close()
    assert list_lines(caplog) == []


async def test_each_run_has_a_line_of_its_own(
    caplog: pytest.LogCaptureFixture, build_bench: Callable[[], Bench]
) -> None:
    """Those that nothing had are left out."""
    bench = build_bench()
    bench.take(build_lease(0, 3))
    await settle()
    bench.engine.fill()
    tally, coordinate = bench.engine.flights.pop()
    tally.fail(TIMEOUT, coordinate, "no answer")
    bench.engine.answer_all()
    await asyncio.sleep(0.5)
    bench.runner.set_current_run("")
    [record] = caplog.records
    assert list_lines(caplog) == ["run r1: 3 requests in 0.0 s: 2 ok, 1 timeout"]
    assert record.__dict__["timeout"] == 1
    assert "exception" not in record.__dict__
    # A run is not over before its last lease is.
    bench = build_bench()
    bench.take(build_lease(0, 100))
    await settle()
    bench.engine.fill()
    bench.runner.stop(Stop(run="r1", up_to=10**9, grace_s=10.0))
    bench.runner.set_current_run("")
    await asyncio.sleep(1.0)
    assert list_lines(caplog) == []
    bench.engine.answer_all()
    await asyncio.sleep(1.0)
    assert list_lines(caplog) == ["run r1: 3 requests in 1.0 s: 3 ok"]
    # A run that is resumed has another line. Each counts what came of it since the last.
    bench = build_bench()
    for number, expected in ((0, 10), (1, 20)):
        bench.runner.set_current_run("r1")
        await work(bench, 100 * number, 100 * number + expected)
        bench.runner.set_current_run("")
        [line] = list_lines(caplog)
        assert line.startswith(f"run r1: {expected} requests in ")


async def test_a_run_begins_before_the_coordinator_has_said_so(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Its leases come another way than that word, and the first may be over by then."""
    bench.runner.set_current_run("")
    await work(bench, 0, 10)
    await work(bench, 10, 20)
    assert list_lines(caplog) == []
    await work(bench, 0, 10, "r2")
    assert [line.partition(" in ")[0] for line in list_lines(caplog)] == ["run r1: 20 requests"]


async def test_a_worker_that_ends_says_what_it_has_done(
    caplog: pytest.LogCaptureFixture, build_bench: Callable[[], Bench]
) -> None:
    """The run goes on without it; what nobody has confirmed counts, and what it gives back does not."""
    bench = build_bench()
    await work(bench, 0, 10)
    bench.take(build_lease(10, 100))
    await settle()
    bench.engine.fill()
    bench.engine.answer_all()
    bench.engine.fill()
    await bench.close()
    assert [line.partition(" in ")[0] for line in list_lines(caplog)] == ["run r1: 13 requests"]
    # A run of which nothing was taken has no line. Its leases were given back.
    bench = build_bench()
    bench.take(build_lease(0, 10), start_by=0.0)
    await asyncio.sleep(0.5)
    bench.runner.set_current_run("")
    await bench.close()
    assert list_lines(caplog) == []
    # Iterations are called so. As everywhere else.
    bench = build_bench()
    await work(bench, 0, 10, spec=msgspec.structs.replace(SPEC, engine=Engine.PYTHON))
    bench.runner.set_current_run("")
    assert list_lines(caplog)[0].startswith("run r1: 10 iterations in ")


async def test_few_runs_are_remembered(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Leases that never end make nothing grow: the oldest runs are logged although they go on."""
    for number in range(10):
        run = f"r{number}"
        bench.take(build_lease(0, 3, run), build_lease(3, 100, run, limit=0))
        await settle()
        await bench.engine.work()
        await asyncio.sleep(0.5)
    runs = [line.partition(":")[0] for line in list_lines(caplog)]
    assert runs == [f"run r{number}" for number in range(6)]
