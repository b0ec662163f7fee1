"""Reports at once that the target of a run is gone, and that it answers again; ends a run for that.

What is known is kept in memory: a restarted coordinator begins to count anew, as does a run that is resumed.
"""

import contextlib
import logging

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history, lifecycle
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.runs.target_outage import Change, TargetOutage, find_stop_after_s, format_limit
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.results.event import Event, EventType
from oku_core.results.tick import Tick

_log = logging.getLogger(__name__)

BACK_SHOWN_S = 10.0
"""For this long those who watch are told that the target answers again."""


class TargetNotices:
    """What there is to say of the targets of runs: at most a line for each."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def show(self, run: str, text: str) -> None:
        """Show a notice of a run; an empty one for none."""
        if text:
            self._texts[run] = text
        else:
            self._texts.pop(run, None)

    def find(self, run: str) -> str:
        """The notice of a run; empty if there is none."""
        return self._texts.get(run, "")


class TargetWatch:
    """Watches the target of one run.

    Args:
        ledger: keeps the events, and the states of runs.
        notices: show what there is to say.
        signals: begin a round when a run was ended.
    """

    def __init__(self, ledger: Ledger, notices: TargetNotices, signals: LoopSignals) -> None:
        self._ledger = ledger
        self._notices = notices
        self._signals = signals
        self._outage = TargetOutage()
        self._notice = ""
        self._back_at: float | None = None

    def record(self, run: RunRecord, tick: Tick, *, is_heard: bool) -> None:
        """Record a second of the run.

        Args:
            run: the run.
            tick: the second.
            is_heard: whether its workers were heard in it; otherwise nobody knows what was ok.
        """
        if run.state != RunState.RUNNING:
            self._reset()
        elif is_heard:
            self._follow(run, tick, self._outage.record(tick))
            if (down_s := self._outage.is_down_for(run.spec)) is not None:
                self._end(run, tick, down_s)
        self._notices.show(run.run, self._notice)

    def _reset(self) -> None:
        self._outage, self._notice, self._back_at = TargetOutage(), "", None

    def _follow(self, run: RunRecord, tick: Tick, change: Change | None) -> None:
        at = tick.sample.at
        if change is Change.GONE:
            self._report(run, at, EventType.TARGET_GONE, f"the target is gone: {self._describe_silence(run)}")
            self._notice += _describe_end(run, was_ok=True)
        elif change is Change.BACK:
            text = f"the target answers again after {format_limit(self._outage.away_s)}"
            self._report(run, at, EventType.TARGET_BACK, text)
            self._back_at = at
        elif self._outage.is_worth_saying(run.spec):
            text = f"{self._describe_silence(run)}{_describe_end(run, was_ok=False)}"
            self._notice = self._notice or text
        elif self._back_at is None or at - self._back_at > BACK_SHOWN_S:
            self._notice, self._back_at = "", None

    def _describe_silence(self, run: RunRecord) -> str:
        silent_s = format_limit(self._outage.silent_s)
        return f"no {_name_one(run)} has been ok for {silent_s}, {self._outage.describe_failures()}"

    def _report(self, run: RunRecord, at: float, what: EventType, text: str) -> None:
        _log.warning("run %s: %s", run.run, text, extra={"run": run.run})
        with self._ledger.change() as t:
            history.keep_events(t, run.run, [Event(at=at, type=what, text=text)])
        self._notice, self._back_at = text, None

    def _end(self, run: RunRecord, tick: Tick, down_s: float) -> None:
        """Let the run come to rest: what is in flight may finish, so that its account stays exact."""
        ever = "" if self._outage.was_ok else "ever "
        reason = (
            f"the target is down: no {_name_one(run)} was {ever}ok within {format_limit(down_s)}, "
            f"{self._outage.describe_failures()}; --stop-when-down says how long to go on"
        )
        self._reset()
        with contextlib.suppress(TransitionError):  # it ends already: its last request did, or a threshold
            with self._ledger.change(tick.sample.at) as t:
                lifecycle.change_state(t, run.run, RunState.PAUSING, tick.sample.at, reason)
            _log.error("run %s ends: %s", run.run, reason, extra={"run": run.run})
            self._signals.wake()


def _name_one(run: RunRecord) -> str:
    """What an index of the run is: `request` or `iteration`."""
    return run.spec.counted.removesuffix("s")


def _describe_end(run: RunRecord, *, was_ok: bool) -> str:
    """What becomes of the run if that goes on, as the end of a sentence; empty if it goes on, too."""
    stop_after_s = find_stop_after_s(run.spec, was_ok=was_ok)
    return "" if stop_after_s is None else f"; the run ends after {format_limit(stop_after_s)} of this"
