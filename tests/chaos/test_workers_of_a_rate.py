"""A worker of a run at a rate is killed: the target sees the plan.

Each run goes to a target that knows when each index came, with each engine beside the other.
"""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
from tests.kit.coordinators.transactions import read
from tests.kit.runs.account import assert_completed, list_flags
from tests.kit.runs.local_run import LocalRun, Start, wait_until
from tests.kit.servers.arrival_target import ArrivalTarget, run_arrival_target

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables.schedule_table import fetch_periods
from oku_core.spec.spec import HTTP1_ENGINES, Engine

pytestmark = pytest.mark.alone

RATE = 60
SHARE = RATE / 3
"""That of one of three workers, in a second."""
LATE_S = 2.0
LATE = ("--late", f"{LATE_S}s")
UNREPORTED_S = 1.0
"""A worker that has just said what it did would die with nothing; the next time is three seconds later."""
BUSY_S = 2.0
"""By so much a busy machine may make anything later than it should be."""


class Watched(NamedTuple):
    """A run at a rate, and who sees what comes of it."""

    run: LocalRun
    target: ArrivalTarget

    def list_lateness(self) -> list[float]:
        """How long after its due time each index came first, in seconds."""
        ledger = Ledger(self.run.data_dir / "ledger.sqlite3", read_only=True)
        try:
            [period] = read(ledger, fetch_periods, self.run.run_id())
        finally:
            ledger.close()
        times = self.target.group_by_index()
        return [
            min(ats) - period.build_period().unix_time((index + 0.5) / RATE) for index, ats in times.items()
        ]

    def count_repeated(self) -> int:
        """How many requests came although their index had come before."""
        return len(self.target.arrivals) - len(self.target.group_by_index())


StartRate = Callable[..., dict[Engine, Watched]]


@pytest.fixture
def start_rate(start: Start) -> Iterator[StartRate]:
    """Starts a run at the rate with each engine, beside each other."""
    with ExitStack() as stack:

        def start_each(seconds: float, *flags: str, workers: int = 3) -> dict[Engine, Watched]:
            targets = {engine: stack.enter_context(run_arrival_target(0.02)) for engine in HTTP1_ENGINES}
            load = ("--rate", f"{RATE}/s", "--duration", f"{seconds}s", "--workers", str(workers), "--quiet")
            return {
                engine: Watched(
                    start("run", *load, *flags, "--engine", engine, "--url", target.url, data_dir=engine),
                    target,
                )
                for engine, target in targets.items()
            }

        yield start_each


def count_others(summary: dict[str, Any]) -> dict[str, int]:
    """The outcomes that are neither zero nor `ok`."""
    return {name: count for name, count in summary["outcomes"].items() if count and name != "ok"}


def assert_seen(watched: Watched, summary: dict[str, Any]) -> None:
    """All is accounted, once, and the target saw no more and no less; nothing came before it was due."""
    assert_completed(summary)
    outcomes, seen = summary["outcomes"], watched.target.group_by_index()
    assert outcomes["ok"] <= len(seen) <= summary["requests"] - outcomes["not_sent"]
    assert watched.count_repeated() + len(seen) - outcomes["ok"] <= summary["resent_at_most"]
    assert min(watched.list_lateness()) > -0.001


def kill_worker(runs: Iterable[LocalRun], *, unnoticed_s: float = 0.0) -> list[float]:
    """Kill a worker of each run; how long it took until its leases were taken back, in seconds.

    For a while nobody starts another, who would tell of its death: the command is stopped.
    """
    killed = []
    for run in runs:
        run.wait_for_accounted(2 * RATE)
        time.sleep(UNREPORTED_S)
        run.process.send_signal(signal.SIGSTOP)
        run.kill("worker-2")
        killed.append((run, time.monotonic()))
    time.sleep(unnoticed_s)
    gone_s = []
    for run, _ in killed:
        run.process.send_signal(signal.SIGCONT)
    for run, killed_at in killed:
        log = run.data_dir / "logs" / "coordinator.log"
        wait_until(lambda log=log: "worker_lost" in log.read_text(), 20, "it is taken for dead")  # type: ignore[misc]
        gone_s.append(time.monotonic() - killed_at)
    return gone_s


def test_a_worker_is_killed(start_rate: StartRate, subtests: pytest.Subtests) -> None:
    """What it had is lost or sent by others in time; theirs is sent at its time, and the run ends on time."""
    seconds = 14
    runs = start_rate(seconds, *LATE)
    gone_s = kill_worker((watched.run for watched in runs.values()), unnoticed_s=LATE_S + 1)

    for (engine, watched), away_s in zip(runs.items(), gone_s, strict=True):
        with subtests.test(engine=engine):
            summary = watched.run.finish()

            assert_seen(watched, summary)
            assert summary["requests"] == RATE * seconds
            assert set(count_others(summary)) <= {"lost", "not_sent"}
            missing = sum(count_others(summary).values())
            assert 0 < summary["outcomes"]["lost"] <= missing <= SHARE * (away_s + BUSY_S)
            assert summary["not_sent"] == {
                "in_flight_cap": 0, "late": 0, "not_dealt": summary["outcomes"]["not_sent"],
            }  # fmt: skip
            assert max(watched.list_lateness()) <= LATE_S + BUSY_S
            assert summary["active_s"] <= seconds + LATE_S + BUSY_S
            assert {"worker_lost", "resent"} <= list_flags(summary)
            # Others of its machine have found its record: what it had not reached does not count.
            assert summary["resent_at_most"] <= SHARE * (4 * UNREPORTED_S + BUSY_S)
