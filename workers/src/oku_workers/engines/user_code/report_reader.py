"""Counts what a host reports: iterations in the account of their lease, requests beside it.

User code can write anything to the socket of its host. It can lie about its own run, but about nothing
else: every figure has bounds, and one beyond them ends the host.
"""

import logging
import time
from typing import Protocol

from oku_core.accounting.outcome import (
    EXCEPTION,
    FAILED_CHECK,
    LONGEST_REASON,
    LOST,
    NOT_SENT,
    OK,
    OUTCOMES,
    TIMEOUT,
)
from oku_core.messaging.checkpoint import LONGEST_NAME
from oku_core.user_code.messages import (
    DROPPED,
    ENDED_FIELDS,
    HIGHEST_FIGURE,
    HIGHEST_STATUS,
    NO_TEXT,
    OUTSIDE,
    REQUEST_FIELDS,
    UNTOUCHED,
    Report,
)
from oku_workers.engines.user_code.handouts import Handed, Handouts
from oku_workers.executions.execution import Execution

_log = logging.getLogger(__name__)

_NS_PER_US = 1_000
_ENDS = frozenset({OK, FAILED_CHECK, EXCEPTION, TIMEOUT, DROPPED, UNTOUCHED})
_REQUEST_ENDS = frozenset(range(len(OUTCOMES))) - {NOT_SENT, LOST}
_MOST_OUTSIDE = 10_000
_MOST_TEXTS = 2_000
"""A host distinguishes fewer names and reasons."""
_UNEXPLAINED = "unknown"


class ExecutionFinder(Protocol):
    """Knows an execution that is under way."""

    def find_execution(self) -> Execution | None:
        """An execution that is under way; None if there is none."""


class ReportReader:
    """Counts the reports of one host, in their order.

    Args:
        handouts: the iterations that it has.
        engine: finds the execution that counts requests outside of any iteration.

    Attributes:
        ended: how many iterations it has ended.
    """

    def __init__(self, handouts: Handouts, engine: ExecutionFinder) -> None:
        self._handouts = handouts
        self._engine = engine
        self._texts: list[str] = []
        self._outside: list[int] = []
        self.ended = 0

    def read(self, report: Report) -> None:
        """Count the requests and iterations of a report.

        Raises:
            ValueError: no host would report this.
        """
        if not all(
            0 <= time_us <= HIGHEST_FIGURE for time_us in (report.cpu_us, report.busy_us, report.late_us)
        ):
            raise ValueError(f"times of {report.cpu_us}, {report.busy_us} and {report.late_us} us")
        self._texts += (_clean(text) for text in report.texts)
        if len(self._texts) > _MOST_TEXTS:
            raise ValueError(f"reports have {len(self._texts)} texts")
        try:
            self._count_requests(report.requests)
            self._count_ended(report)
        except IndexError:
            raise ValueError("a report names a text or an outcome that there is not") from None

    def _count_requests(self, numbers: list[int]) -> None:
        texts, handouts, cursor = self._texts, self._handouts, iter(numbers)
        for request in zip(*[cursor] * REQUEST_FIELDS, strict=True):
            slot, name, outcome, status, latency_us, received, reason = request
            if not (
                0 <= latency_us <= HIGHEST_FIGURE
                and 0 <= received <= HIGHEST_FIGURE
                and 0 <= status <= HIGHEST_STATUS
            ):
                raise ValueError(f"a request of {latency_us} us, {received} bytes, status {status}")
            if outcome not in _REQUEST_ENDS:
                raise ValueError(f"a request has ended as outcome {outcome}")
            handed = handouts.find(slot) if slot != OUTSIDE else None
            if handed is None:
                if len(self._outside) < _MOST_OUTSIDE * REQUEST_FIELDS:
                    self._outside += request
                continue
            tally = handed.tally
            inner = tally.execution.find_inner(tally.phase, texts[name])
            inner.add(outcome, status, latency_us, received)
            if outcome != OK:
                inner.explain(outcome, handed.coordinate, self._find_reason(reason))
        # Before the iterations that have ended are counted: with the last of them an execution is finished.
        if self._outside and (execution := self._engine.find_execution()) is not None:
            outside, self._outside = self._outside, []
            self._count_outside(execution, outside)

    def _count_outside(self, execution: Execution, numbers: list[int]) -> None:
        """Count requests that were made before or between iterations, with the first one of an execution."""
        coordinate, phase = execution.ranges.ranges[0][0], execution.tally.phase
        cursor = iter(numbers)
        for _, name, outcome, status, latency_us, received, reason in zip(
            *[cursor] * REQUEST_FIELDS, strict=True
        ):
            inner = execution.find_inner(phase, self._texts[name])
            inner.add(outcome, status, latency_us, received)
            if outcome != OK:
                inner.explain(outcome, coordinate, self._find_reason(reason))

    def _count_ended(self, report: Report) -> None:
        cursor, now_ns, handouts = iter(report.ended), time.monotonic_ns(), self._handouts
        for slot, outcome, begun_ns, took_us, reason in zip(*[cursor] * ENDED_FIELDS, strict=True):
            handed = handouts.find(slot)
            if handed is None:
                raise ValueError(f"the iteration in slot {slot} has ended twice")
            if not (0 <= took_us <= HIGHEST_FIGURE and 0 <= begun_ns <= now_ns):
                raise ValueError(f"an iteration of {took_us} us that began at {begun_ns} ns")
            if outcome not in _ENDS:
                raise ValueError(f"an iteration has ended as outcome {outcome}")
            why = self._find_reason(reason)
            # Only after all checks: an iteration in hand when a host ends is given back.
            handouts.pop(slot)
            if outcome in (DROPPED, UNTOUCHED):
                handed.tally.execution.give_back(handed.coordinate, is_untouched=outcome == UNTOUCHED)
                continue
            self.ended += 1
            _end(handed, outcome, begun_ns, took_us, why)
            if reason in report.tracebacks:
                self._keep_traceback(handed.tally.execution, why, report.tracebacks[reason])

    def _keep_traceback(self, execution: Execution, reason: str, traceback: str) -> None:
        _log.warning("user code: %s\n%s", reason, traceback, extra={"run": execution.lease.run})
        execution.keep_traceback(reason, traceback)

    def _find_reason(self, number: int) -> str:
        return _UNEXPLAINED if number == NO_TEXT else self._texts[number][:LONGEST_REASON]


def _end(handed: Handed, outcome: int, begun_ns: int, took_us: int, why: str) -> None:
    """Count an iteration that has ended by itself, or as a timeout."""
    tally, coordinate = handed.tally, handed.coordinate
    lateness_us = max(0, begun_ns - handed.due_ns) // _NS_PER_US if handed.due_ns else 0
    if outcome in (OK, FAILED_CHECK):
        if outcome != OK:
            tally.explain(outcome, coordinate, why)
        tally.complete(outcome, took_us, lateness_us)
    else:
        tally.fail(outcome, coordinate, why, lateness_us)


def give_back_or_end(handed: Handed, begun_ns: int, limit_s: float | None) -> None:
    """Account for an iteration whose host has died with it.

    If it had already exceeded the limit of an iteration, it ends as a timeout, so that it is not retried for
    ever.

    Args:
        handed: the iteration.
        begun_ns: when it began, according to its slot; 0 if it has not.
        limit_s: how long one may take; None without a limit.
    """
    tally, coordinate, now_ns = handed.tally, handed.coordinate, time.monotonic_ns()
    if begun_ns and limit_s is not None and now_ns - begun_ns > limit_s * 1e9:
        lateness_us = max(0, begun_ns - handed.due_ns) // _NS_PER_US if handed.due_ns else 0
        tally.fail(TIMEOUT, coordinate, explain_limit(limit_s), lateness_us)
    else:
        tally.execution.give_back(coordinate, is_untouched=not begun_ns)


def explain_limit(limit_s: float) -> str:
    """The reason of iterations that have taken too long."""
    return f"no end within {limit_s:g}s"


def _clean(text: str) -> str:
    """A text of user code as one line of bounded length."""
    printable = "".join(char if char.isprintable() else " " for char in text[:LONGEST_NAME])
    return " ".join(printable.split()) or _UNEXPLAINED
