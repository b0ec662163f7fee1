"""Reports at once that the target of a run is gone, and that it is back; may end the run.

A target is gone when nothing was ok for a while after something was. Only seconds in which the run could have
had an ok count: from the first one with a request in flight or ended, without the seconds at the end of a run
in which all remaining requests are in flight. Failures alone are not enough where requests are rare, nor is
silence where responses are slow. The rule applies to the run as a whole: progress does not distinguish
targets.

The state is in memory: a restarted coordinator starts to count again, as for a resumed run.
"""

import contextlib
import logging
from dataclasses import dataclass, field
from enum import Enum, auto

from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history, lifecycle
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.runs.notices import TargetNotices
from oku_core.accounting.outcome import LOST, NOT_SENT, OUTCOMES, build_no_counts, count_sent
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.results.event import Event, EventType
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import format_duration
from oku_core.summary.tick import Tick

_log = logging.getLogger(__name__)

GONE_AFTER_S = 10.0
"""A target is gone when nothing was ok for this long."""
FEWEST_FAILURES = 2
"""A single request may fail for reasons of its own."""
NEVER_OK_STOP_S = 30.0
"""A run in which nothing was ever ok ends after this time, unless its spec sets another."""
BEYOND_TIMEOUT_S = 5.0
"""It does not end before its first timeouts are visible: an engine notices them within a second."""
_SLOWEST_TIMES = 2.0
"""A silence counts once it is this much longer than the slowest responses."""
BACK_SHOWN_S = 10.0
"""For this long, a notice shows that the target is back."""


class Change(Enum):
    """The change in a second."""

    GONE = auto()
    BACK = auto()


@dataclass
class TargetOutage:
    """The state of the target since a run started, was resumed, or got another coordinator.

    Attributes:
        was_ok: whether anything of the run was ever ok.
        is_gone: whether the target is gone.
        silent_s: the seconds without an ok in which one was possible.
        away_s: the length of the last outage, once the target is back.
        in_flight: the requests that were in flight at the last tick.
    """

    was_ok: bool = False
    is_gone: bool = False
    silent_s: float = 0.0
    away_s: float = 0.0
    in_flight: int = 0
    _hung_s: float = 0.0
    """How much of that time had requests in flight throughout."""
    _failures: list[int] = field(default_factory=build_no_counts)
    """The outcomes of requests that ended in that time."""
    _slowest_s: float | None = None
    """The time of the slowest responses of a second; None until something was ok."""
    _most_ok: int = 0
    _ok_at: float = 0.0

    def record(self, tick: Tick) -> Change | None:
        """Record a second of a running run with reports of its workers."""
        sample = tick.sample
        ok, had_ok = sample.outcomes_so_far[0], self.was_ok
        is_ok = sample.outcomes[0] > 0 or (had_ok and ok > self._most_ok)
        self._most_ok = max(self._most_ok, ok)
        self.was_ok = had_ok or is_ok or ok > 0
        self.in_flight = round(sample.in_flight or 0)
        if is_ok:
            return self._record_ok(tick)
        if not _is_waiting_for_last(tick):
            self._record_silence(tick)
        patience_s = max(GONE_AFTER_S, _SLOWEST_TIMES * (self._slowest_s or 0.0))
        if self.is_gone or not self.was_ok or not self._is_silent_for(patience_s):
            return None
        self.is_gone = True
        return Change.GONE

    def is_down_for(self, spec: Spec) -> float | None:
        """For how many seconds nothing was ok if the run should end because of it, else None."""
        limit_s = find_stop_after_s(spec, was_ok=self.was_ok)
        if limit_s is None or not self._is_silent_for(limit_s) or self._may_be_slow(spec):
            return None
        return limit_s

    def is_worth_reporting(self, spec: Spec) -> bool:
        """Whether the target is gone, or nothing of the run was ok for the same time."""
        is_down = not self.was_ok and self._is_silent_for(GONE_AFTER_S)
        return self.is_gone or (is_down and not self._may_be_slow(spec))

    def describe_failures(self) -> str:
        """How most of the failed requests ended, or that none has ended."""
        most = max(range(len(OUTCOMES)), key=lambda outcome: self._failures[outcome])
        if not self._failures[most]:
            return "none of those in flight has ended"
        return f"most ended as {OUTCOMES[most].replace('_', ' ')}"

    def _record_ok(self, tick: Tick) -> Change | None:
        was_gone = self.is_gone
        if was_gone:
            self.away_s = tick.sample.at - self._ok_at
        self.is_gone, self.silent_s, self._hung_s, self._failures = False, 0.0, 0.0, build_no_counts()
        self._ok_at = tick.sample.at
        self._slowest_s = max(self._slowest_s or 0.0, (tick.sample.p99_ms or 0.0) / 1000)
        return Change.BACK if was_gone else None

    def _record_silence(self, tick: Tick) -> None:
        sample = tick.sample
        ended = count_sent(sample.outcomes)
        if not (self.silent_s or self.in_flight or ended):
            return
        self._ok_at = self._ok_at or sample.at - sample.seconds
        self.silent_s += sample.seconds
        self._hung_s = self._hung_s + sample.seconds if self.in_flight else 0.0
        for outcome, count in enumerate(sample.outcomes):
            self._failures[outcome] += 0 if outcome in (NOT_SENT, LOST) else count

    def _may_be_slow(self, spec: Spec) -> bool:
        """Whether requests in flight may be slow: no timeout bounds an iteration of user code.

        Some may fail early although most are sessions of minutes.
        """
        is_bounded = not spec.runs_user_code or spec.stop_when_down_s is not None
        return not is_bounded and sum(self._failures) < self.in_flight

    def _is_silent_for(self, seconds: float) -> bool:
        has_failed = sum(self._failures) >= FEWEST_FAILURES
        has_hung = self._slowest_s is not None and self._hung_s >= seconds
        return self.silent_s >= seconds and (has_failed or has_hung)


def find_stop_after_s(spec: Spec, *, was_ok: bool) -> float | None:
    """The seconds without an ok after which a run ends; None for never."""
    if spec.stop_when_down_s is not None:
        return spec.stop_when_down_s or None
    return None if was_ok else max(NEVER_OK_STOP_S, spec.timeout_s + BEYOND_TIMEOUT_S)


def format_limit(seconds: float) -> str:
    """Format a limit for users: `30 s`, `2 min 00 s`."""
    return f"{seconds:.0f} s" if seconds < 100 else format_duration(seconds)


def _is_waiting_for_last(tick: Tick) -> bool:
    """Whether all requests have been sent: those in flight may be the slowest ones."""
    sample = tick.sample
    is_over = tick.clock_s is not None and tick.length_s is not None and tick.clock_s >= tick.length_s
    return is_over or sample.requests_total - sample.done <= (sample.in_flight or 0)


class TargetWatch:
    """Watches the target of one run."""

    def __init__(self, ledger: Ledger, notices: TargetNotices, signals: LoopSignals) -> None:
        self._ledger = ledger
        self._notices = notices
        self._signals = signals
        self._outage = TargetOutage()
        self._notice = ""
        self._back_at: float | None = None

    def record(self, run: RunRecord, tick: Tick, *, has_reports: bool) -> None:
        """Record a second of the run. Without reports of its workers, it does not count."""
        if run.state != RunState.RUNNING:
            self._reset()
        elif has_reports:
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
        elif self._outage.is_worth_reporting(run.spec):
            text = f"{self._describe_silence(run)}{_describe_end(run, was_ok=False)}"
            self._notice = self._notice or text
        elif self._back_at is None or at - self._back_at > BACK_SHOWN_S:
            self._notice, self._back_at = "", None

    def _describe_silence(self, run: RunRecord) -> str:
        silent_s = format_limit(self._outage.silent_s)
        return f"no {_choose_noun(run)} has been ok for {silent_s}, {self._outage.describe_failures()}"

    def _report(self, run: RunRecord, at: float, what: EventType, text: str) -> None:
        _log.warning("run %s: %s", run.run, text, extra={"run": run.run})
        with self._ledger.change() as t:
            history.keep_events(t, run.run, [Event(at=at, type=what, text=text)])
        self._notice, self._back_at = text, None

    def _end(self, run: RunRecord, tick: Tick, down_s: float) -> None:
        """End the run; requests in flight may finish, so that its account stays exact."""
        ever = "" if self._outage.was_ok else "ever "
        reason = (
            f"the target is down: no {_choose_noun(run)} was {ever}ok within {format_limit(down_s)}, "
            f"{self._outage.describe_failures()}; --stop-when-down sets the limit"
        )
        self._reset()
        with contextlib.suppress(TransitionError):  # its last request or a threshold ends it already
            with self._ledger.change(tick.sample.at) as t:
                lifecycle.change_state(t, run.run, RunState.PAUSING, tick.sample.at, reason)
            _log.error("run %s ends: %s", run.run, reason, extra={"run": run.run})
            self._signals.wake()


def _choose_noun(run: RunRecord) -> str:
    """The word for an index of the run: `request` or `iteration`."""
    return run.spec.counted.removesuffix("s")


def _describe_end(run: RunRecord, *, was_ok: bool) -> str:
    """The consequence for the run if this continues, as the end of a sentence; empty if there is none."""
    stop_after_s = find_stop_after_s(run.spec, was_ok=was_ok)
    return "" if stop_after_s is None else f"; the run ends after {format_limit(stop_after_s)} of this"
