"""Says at once that the target of the active run is gone, and that it answers again; ends a run for that.

What is known is kept in memory: a restarted coordinator begins to count anew, as does a run that is resumed.
"""

import contextlib
import logging
from collections.abc import Iterator

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.runs.target_outage import Change, TargetOutage, find_stop_after_s, format_limit
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.results.event import Event, EventType
from oku_core.results.tick import Tick

_log = logging.getLogger(__name__)

BACK_SHOWN_S = 10.0
"""For this long those who watch are told that the target answers again."""


class TargetWatch:
    """Watches the target of the run that is active.

    Args:
        ledger: keeps the events, and the states of runs.
        signals: begin a round when a run was ended.
    """

    def __init__(self, ledger: Ledger, signals: LoopSignals) -> None:
        self._ledger = ledger
        self._signals = signals
        self._run: str | None = None
        self._outage = TargetOutage()
        self._notice = ""
        self._back_at: float | None = None

    def take(self, run: RunRecord, tick: Tick, *, is_heard: bool) -> None:
        """Take in a second of the run that has its turn.

        Args:
            run: the run.
            tick: the second.
            is_heard: whether its workers were heard in it; otherwise nobody knows what was ok.
        """
        if run.run != self._run or run.state != RunState.RUNNING:
            self._forget()
        if run.state != RunState.RUNNING:
            return
        self._run = run.run
        if not is_heard:
            return
        self._note(run, tick, self._outage.take(tick))
        if (down_s := self._outage.is_down_for(run.spec)) is not None:
            self._end(run, tick, down_s)

    def find_notices(self, run: str) -> Iterator[str]:
        """What there is to say of the target of a run: a line, or nothing."""
        if run == self._run and self._notice:
            yield self._notice

    def _forget(self) -> None:
        self._run, self._outage, self._notice, self._back_at = None, TargetOutage(), "", None

    def _note(self, run: RunRecord, tick: Tick, change: Change | None) -> None:
        at = tick.sample.at
        if change is Change.GONE:
            self._tell(run, at, EventType.TARGET_GONE, f"the target is gone: {self._describe_silence(run)}")
            self._notice += _describe_end(run, was_ok=True)
        elif change is Change.BACK:
            text = f"the target answers again after {format_limit(self._outage.away_s)}"
            self._tell(run, at, EventType.TARGET_BACK, text)
            self._back_at = at
        elif self._outage.is_worth_saying(run.spec):
            text = f"{self._describe_silence(run)}{_describe_end(run, was_ok=False)}"
            self._notice = self._notice or text
        elif self._back_at is None or at - self._back_at > BACK_SHOWN_S:
            self._notice, self._back_at = "", None

    def _describe_silence(self, run: RunRecord) -> str:
        silent_s = format_limit(self._outage.silent_s)
        return f"no {_name_one(run)} has been ok for {silent_s}, {self._outage.describe_failures()}"

    def _tell(self, run: RunRecord, at: float, what: EventType, text: str) -> None:
        _log.warning("run %s: %s", run.run, text, extra={"run": run.run})
        self._ledger.history.note(run.run, [Event(at=at, type=what, text=text)])
        self._notice, self._back_at = text, None

    def _end(self, run: RunRecord, tick: Tick, down_s: float) -> None:
        """Let the run come to rest: what is in flight may finish, so that its account stays exact."""
        ever = "" if self._outage.was_ok else "ever "
        reason = (
            f"the target is down: no {_name_one(run)} was {ever}ok within {format_limit(down_s)}, "
            f"{self._outage.describe_failures()}; --stop-when-down says how long to go on"
        )
        self._forget()
        with contextlib.suppress(TransitionError):  # it ends already: its last request did, or a threshold
            self._ledger.runs.change_state(run.run, RunState.PAUSING, tick.sample.at, reason)
            _log.error("run %s ends: %s", run.run, reason, extra={"run": run.run})
            self._signals.wake()


def _name_one(run: RunRecord) -> str:
    """What an index of the run is: `request` or `iteration`."""
    return run.spec.counted.removesuffix("s")


def _describe_end(run: RunRecord, *, was_ok: bool) -> str:
    """What becomes of the run if that goes on, as the end of a sentence; empty if it goes on, too."""
    stop_after_s = find_stop_after_s(run.spec, was_ok=was_ok)
    return "" if stop_after_s is None else f"; the run ends after {format_limit(stop_after_s)} of this"
