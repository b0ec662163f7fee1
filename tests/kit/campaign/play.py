"""Plays a run of a campaign with real processes, and checks what must hold whatever happened to them."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.kit.campaign.draw import Deed, Draw, Fault
from tests.kit.loki.loki_account import assert_published, sum_up
from tests.kit.loki.loki_queries import LokiQueries
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import LocalRun, Start, sum_series, wait_until

from oku_core.accounting.outcome import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable

_ENDS_S = 180.0
"""Once nothing happens any more, a run is over so soon: its work, the death of a worker and a resumption."""
_STARTS_S = 120.0
_DIES_S = 15.0
_MOST_RESUMPTIONS = 10
_COMPLETED = "completed"
_POLL_S = 0.05


class Play:
    """One run from its start to its check.

    Args:
        draw: what happens.
        start: starts `oku`.
        data_dir: a name for its data folder.
        loki: where its lines go; None for nowhere.
    """

    def __init__(self, draw: Draw, start: Start, data_dir: str, loki: LokiQueries | None) -> None:
        self._draw = draw
        self._loki = loki
        self._loki_flags = ["--loki", loki.url] if loki else []
        self._start: Callable[..., LocalRun] = lambda *arguments: start(*arguments, data_dir=data_dir)
        self._run_id = ""
        self._frozen: dict[int, float] = {}

    def carry_out(self) -> dict[str, Any]:
        """Run it, hurt it, wait for its end and check it; its summary."""
        run = self._start("run", *self._draw.build_flags(), *self._loki_flags)
        run.wait_for_run(_STARTS_S)
        self._run_id = run.run_id()
        for fault in self._draw.faults:
            self._pass(fault.after_s, run)
            if run.process.poll() is not None:
                break
            run = self._do(fault, run)
        summary = self._finish(run)
        self._check(run, summary)
        return summary

    def _do(self, fault: Fault, run: LocalRun) -> LocalRun:
        """Do it; the command that carries the run from then on."""
        if fault.deed is Deed.KILL_COMMAND:
            run.process.kill()
            run.process.wait()
            return self._resume(run, fault.workers)
        if fault.deed is Deed.INTERRUPT:
            run.process.send_signal(signal.SIGINT)
            self._wait_for_end(run)
            return self._resume(run, fault.workers)
        pid = run.children().get(fault.victim, 0)
        if pid:
            # It may have ended this moment, by itself or by the deed before.
            with suppress(ProcessLookupError):
                os.kill(pid, _SIGNALS[fault.deed])
                if fault.deed is Deed.FREEZE:
                    self._frozen[pid] = time.monotonic() + fault.length_s
        return run

    def _resume(self, run: LocalRun, workers: int) -> LocalRun:
        """Go on with it, unless it was over by then."""
        run.close()
        self._frozen.clear()
        if run.fetch_summary(self._run_id)["state"] == _COMPLETED:
            return run
        return self._start("resume", self._run_id, "--workers", str(workers), *self._loki_flags)

    def _finish(self, run: LocalRun) -> dict[str, Any]:
        """Wait until it is over; one that failed because all of its workers died goes on."""
        for _ in range(_MOST_RESUMPTIONS):
            self._wait_for_end(run)
            summary = run.fetch_summary(self._run_id)
            if summary["state"] == _COMPLETED:
                return summary
            run = self._resume(run, self._draw.workers)
        raise AssertionError(f"it is {summary['state']} after {_MOST_RESUMPTIONS} resumptions")

    def _wait_for_end(self, run: LocalRun) -> None:
        deadline = time.monotonic() + _ENDS_S
        while run.process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"it does not end: {run.output}\n{run.read_logs()}")
            self._pass(_POLL_S, run)

    def _pass(self, length_s: float, run: LocalRun) -> None:
        """Let time pass, in which frozen processes thaw when they are due, and the run may end."""
        deadline = time.monotonic() + length_s
        while (now := time.monotonic()) < deadline and run.process.poll() is None:
            for pid in [pid for pid, thaws_at in self._frozen.items() if thaws_at <= now]:
                del self._frozen[pid]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            time.sleep(min(_POLL_S, deadline - now))

    def _check(self, run: LocalRun, summary: dict[str, Any]) -> None:
        """No process is left; account, what was served, series and Loki agree."""
        folder = str(run.data_dir)
        wait_until(
            lambda: not find_processes(folder), _DIES_S, f"no process is left: {find_processes(folder)}"
        )
        assert_completed(summary)
        accounted = summary["accounted"]
        summed = sum(sum_series(run.data_dir / "ledger.sqlite3", self._run_id).values())
        assert summed == accounted, f"the series sums to {summed:,} of {accounted:,}"
        if self._loki is not None:
            assert_published(self._loki, summary)
            ticked = sum(sum_up(self._loki, self._run_id, "tick", outcome).get("", 0) for outcome in OUTCOMES)
            assert ticked == accounted, f"the ticks in Loki sum to {ticked:,} of {accounted:,}"


_SIGNALS = {Deed.KILL: signal.SIGKILL, Deed.FREEZE: signal.SIGSTOP, Deed.TERMINATE: signal.SIGTERM}


def find_processes(folder: str) -> list[str]:
    """The commands of living processes that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if folder in command and path.parent.name != str(os.getpid()):
                found.append(f"{path.parent.name} {command}")
    return found
