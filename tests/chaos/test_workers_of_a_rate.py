"""Workers of runs at a rate are killed, stopped and joined, their broker is away: the target sees the plan.

Each run goes to a target that knows when each index came, with each engine beside the other.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.kit.coordinators.transactions import read
from tests.kit.runs.account import assert_account_balances, assert_completed, list_flags
from tests.kit.runs.local_run import LocalRun, Start, wait_until
from tests.kit.servers.arrival_target import ArrivalTarget, run_arrival_target
from tests.kit.workers.guest_worker import build_guest

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables.schedule_table import fetch_periods, fetch_waves
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


def test_a_worker_is_killed_and_what_is_late_is_sent(
    start_rate: StartRate, subtests: pytest.Subtests
) -> None:
    """With `--late send` each request is sent: those of the dead worker as soon as others have them."""
    seconds = 12
    runs = start_rate(seconds, "--late", "send")
    gone_s = kill_worker(watched.run for watched in runs.values())

    for (engine, watched), away_s in zip(runs.items(), gone_s, strict=True):
        with subtests.test(engine=engine):
            summary = watched.run.finish()

            assert_seen(watched, summary)
            assert count_others(summary) == {}
            assert len(watched.target.group_by_index()) == RATE * seconds
            late = [lateness for lateness in watched.list_lateness() if lateness > BUSY_S]
            assert len(late) <= SHARE * (away_s + BUSY_S)
            assert max(late, default=0.0) <= away_s + 2 * BUSY_S
            assert summary["resent_at_most"] > 0


def test_a_worker_joins(
    start_rate: StartRate, subtests: pytest.Subtests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its share of the waves that are dealt from then on, and nothing comes late for it."""
    monkeypatch.setenv("OKU_DEBUGGABLE", "yes")
    runs = start_rate(600, workers=2)
    with ExitStack() as stack:
        for engine, (run, _) in runs.items():
            run.wait_for_accounted(RATE)
            assert list_lanes(run)[-1] == 2
            log = stack.enter_context((tmp_path / f"{engine}-guest.log").open("w"))
            guest = stack.enter_context(subprocess.Popen(build_guest(run, "guest"), stderr=log))
            stack.callback(guest.terminate)
        for run, _ in runs.values():
            wait_until(lambda run=run: "guest" in run.worker_names(), 90, "it has sent something")  # type: ignore[misc]
            assert list_lanes(run)[-1] == 3
            run.process.send_signal(signal.SIGINT)
        for engine, watched in runs.items():
            with subtests.test(engine=engine):
                summary = watched.run.finish()

                assert summary["state"] == "paused"
                assert_account_balances(summary)
                assert summary["outcomes"]["ok"] == summary["accounted"] == len(watched.target.arrivals)
                assert summary["resent_at_most"] == 0
                assert max(watched.list_lateness()) <= BUSY_S


def list_lanes(run: LocalRun) -> list[int]:
    """Into how many lanes the waves are divided that are not yet accounted."""
    ledger = Ledger(run.data_dir / "ledger.sqlite3", read_only=True)
    try:
        return [wave.lanes for wave in read(ledger, fetch_waves, run.run_id())]
    finally:
        ledger.close()


def test_a_worker_is_stopped_for_some_seconds(start_rate: StartRate, subtests: pytest.Subtests) -> None:
    """It sends what it is not too late for; the rest of its share is not sent, and nobody else notices."""
    stopped_s = 4.5
    runs = start_rate(10, *LATE)
    stopped = []
    for run, _ in runs.values():
        run.wait_for_accounted(2 * RATE)
        stopped.append((time.monotonic(), run.kill("worker-2", signal.SIGSTOP)))
    for stopped_at, pid in stopped:
        time.sleep(max(0.0, stopped_at + stopped_s - time.monotonic()))
        os.kill(pid, signal.SIGCONT)

    for engine, watched in runs.items():
        with subtests.test(engine=engine):
            summary = watched.run.finish()

            assert_seen(watched, summary)
            assert set(count_others(summary)) == {"not_sent"}
            assert summary["not_sent"]["late"] == summary["outcomes"]["not_sent"]
            too_late_s = stopped_s - LATE_S
            assert SHARE * (too_late_s - 0.1) <= summary["not_sent"]["late"] <= SHARE * (too_late_s + BUSY_S)
            lateness = watched.list_lateness()
            assert max(lateness) <= LATE_S + BUSY_S
            assert len([each for each in lateness if each > BUSY_S]) <= SHARE * BUSY_S
            assert summary["resent_at_most"] == 0


@pytest.mark.parametrize("keeps_data", [True, False], ids=["with its data", "empty"])
def test_the_broker_is_away(start_rate: StartRate, subtests: pytest.Subtests, *, keeps_data: bool) -> None:
    """For some seconds, and comes back: everybody has work for longer than that, so nothing comes late."""
    away_s = 4.0
    runs = start_rate(14, "--late", f"{away_s}s")
    for run, _ in runs.values():
        run.wait_for_accounted(5 * RATE)
    gone = []
    for run, _ in runs.values():
        # While its supervisor sleeps, nobody starts the broker again.
        os.kill(run.process.pid, signal.SIGSTOP)
        gone.append((run, run.kill("broker"), time.monotonic()))
    for run, old_pid, gone_at in gone:
        time.sleep(max(0.0, gone_at + away_s - time.monotonic()))
        if not keeps_data:
            shutil.rmtree(run.data_dir / "broker" / "appendonlydir")
        os.kill(run.process.pid, signal.SIGCONT)
        run.wait_for_restart("broker", old_pid)

    for engine, watched in runs.items():
        with subtests.test(engine=engine):
            summary = watched.run.finish()

            assert_seen(watched, summary)
            assert count_others(summary) == {}
            assert max(watched.list_lateness()) <= BUSY_S
            assert summary["resent_at_most"] == 0
            assert not any(worker["lost"] for worker in summary["workers"])


def test_a_worker_of_a_run_with_an_end_is_killed(start: Start, subtests: pytest.Subtests) -> None:
    """A closed run that a time ends does so at that time; what the dead worker had is sent again."""
    seconds = 10
    load = ("--duration", f"{seconds}s", "--concurrency", "5", "--delay", "20ms..80ms", "--workers", "2")
    runs = {
        engine: start("run", *load, "--quiet", "--engine", engine, data_dir=engine)
        for engine in HTTP1_ENGINES
    }
    for run in runs.values():
        run.wait_for_accounted(200)
        old_pid = run.kill("worker-1")
        run.wait_for_restart("worker-1", old_pid)

    for engine, run in runs.items():
        with subtests.test(engine=engine):
            summary = run.finish()

            assert_completed(summary)
            assert count_others(summary) == {}
            # What ten seconds are worth may lie between `done` and the limit.
            assert 0 < summary["resent_at_most"] <= 5 + 12 * 5 / 0.02
            assert seconds - 0.1 <= summary["active_s"] <= seconds + 2 * BUSY_S
            assert {"worker_lost", "resent"} <= list_flags(summary)
