"""Writes ticks and log lines as plain lines, for files, pipes and CI logs; what all views do.

A line is written every few seconds by the ticks' own time, and at once when the state or the notices change.
"""

import time
from collections.abc import Iterator

from oku_cli.live.live_figures import NOTABLE_BOUND_S, describe_reason, describe_total, measure_tick_rates
from oku_cli.live.trend import (
    Quantiles,
    Trend,
    TrendTracker,
    has_rate,
    measure_progress,
)
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.printable import write_error, write_note
from oku_core.accounting.measured_time import DUE_TIMES, Time
from oku_core.accounting.outcome import NOT_SENT_CAUSES, OUTCOMES, Outcome
from oku_core.process.clock import Clock
from oku_core.summary.tick import Tick
from oku_core.tables.formatting import (
    format_clock,
    format_count,
    format_latency,
    format_left,
    format_progress,
    format_rate,
    format_share,
)
from oku_core.tables.part_tables import describe_worst_target
from oku_core.tables.threshold_tables import describe_standing
from oku_core.thresholds.threshold_summary import ThresholdVerdict

_DECIDED = frozenset({ThresholdVerdict.PASSED, ThresholdVerdict.FAILED})
EVERY_S = 5.0
"""Time between two lines while the state stays the same."""


class View:
    """Shows a run in progress; this one shows only problems, on standard error.

    No call waits for anything but the console, and nothing is written to standard output, which may be JSON.
    """

    def start(self, title: str) -> None:
        """Start to show the run under this title."""

    def show_tick(self, tick: Tick) -> None:
        """Show the newest tick."""

    def log(self, line: str) -> None:
        """Show an event: `worker-1 died (signal 9), started again`."""

    def print_line(self, line: str) -> None:
        """Show a line that user code has printed, even when progress is not shown."""
        write_note(line)

    def warn(self, line: str) -> None:
        """Report a problem that does not fix itself, even when progress is not shown."""
        write_error(line)

    def stop(self) -> None:
        """Leave the console as it was. A second call does nothing."""


class PlainView(View):
    """Writes one line for several ticks.

    Args:
        console: the console to write to.
        clock: returns the Unix time of lines that come without a tick.
    """

    def __init__(self, console: Terminal, clock: Clock = time.time) -> None:
        self._console = console
        self._clock = clock
        self._trend = TrendTracker()
        self._written: Tick | None = None
        self._notices: list[str] = []
        self._decided: set[str] = set()

    def start(self, title: str) -> None:
        """Write the title."""
        self.log(title)

    def show_tick(self, tick: Tick) -> None:
        """Write a line if one is due or the state has changed, and one for each new notice and verdict."""
        trend = self._trend.add(tick)
        if self._is_due(tick):
            self._written = tick
            self._write(tick.sample.at, build_line(tick, trend))
        for notice in tick.notices:
            if notice not in self._notices:
                self._write(tick.sample.at, notice)
        self._notices = tick.notices
        for threshold in tick.thresholds:
            if threshold.verdict in _DECIDED and threshold.expression not in self._decided:
                self._decided.add(threshold.expression)
                text = (
                    f"threshold {threshold.verdict}: {threshold.expression} ({describe_standing(threshold)})"
                )
                self._write(tick.sample.at, text)

    def log(self, line: str) -> None:
        """Write it at once."""
        self._write(self._clock(), line)

    def print_line(self, line: str) -> None:
        """Write it at once."""
        self.log(line)

    def warn(self, line: str) -> None:
        """Write it at once."""
        self.log(line)

    def _is_due(self, tick: Tick) -> bool:
        last = self._written
        if last is None or tick.state != last.state:
            return True
        return tick.sample.at - last.sample.at > EVERY_S - 0.5  # ticks come a little early or late

    def _write(self, at: float, line: str) -> None:
        self._console.print_line(f"{format_clock(at)} {line}")


def build_line(tick: Tick, trend: Trend) -> str:
    """Format a tick as one line, without the counts that should be zero and are."""
    sample = tick.sample
    counts = zip(OUTCOMES, sample.outcomes_so_far, strict=True)
    causes = zip(NOT_SENT_CAUSES, tick.not_sent, strict=True)
    _, done, whole = measure_progress(tick)
    progress = format_progress(done, whole)
    total = f"/{requests}" if (requests := describe_total(tick)) else ""
    parts = [
        f"{tick.state} {format_count(sample.done)}{total}",
        f"({progress}, {format_count(sample.accounted)} accounted)",
        *([f"phase {sample.phase}"] if sample.phase else []),
        *_list_rates(tick, trend),
        f"in flight {format_count(round(sample.in_flight or 0))}",
        *_list_ok(tick),
        *(f"{outcome} {format_count(count)}" for outcome, count in counts if count and outcome != Outcome.OK),
        *(f"{cause} {format_count(count)}" for cause, count in causes if count),
        *(f"({describe_reason(failure)})" for failure in tick.failures),
        *_list_quantiles(tick, trend),
        *describe_worst_target(tick),
        f"workers {sample.workers}",
    ]
    if (bound_s := sample.clock_bound_s or 0.0) >= NOTABLE_BOUND_S:
        parts.append(f"clock known to within {format_latency(bound_s * 1000)}")
    if sample.resent_at_most:
        parts.append(f"resent at most {format_count(sample.resent_at_most)}")
    if trend.left_s is not None:
        parts.append(f"left {format_left(trend.left_s)}")
    return " ".join(parts)


def _list_ok(tick: Tick) -> Iterator[str]:
    ok, ended = tick.sample.outcomes_so_far[0], sum(tick.sample.outcomes_so_far)
    yield f"ok {format_count(ok)}"
    if ended:
        yield f"({format_share(ok, ended)})"


def _list_rates(tick: Tick, trend: Trend) -> Iterator[str]:
    if has_rate(tick):
        rates = measure_tick_rates(tick)
        yield f"planned {format_rate(rates.planned_rps)} sent {format_rate(rates.sent_rps)}"
        yield f"ended {format_rate(rates.ended_rps)}"
    else:
        yield format_rate(trend.recent_rps)


def _list_quantiles(tick: Tick, trend: Trend) -> Iterator[str]:
    yield _format_quantiles(trend.times[Time.LATENCY])
    if has_rate(tick):
        for time in DUE_TIMES:
            yield f"{time.label} {_format_quantiles(trend.times[time])}"


def _format_quantiles(quantiles: Quantiles) -> str:
    return f"p50 {format_latency(quantiles.p50_ms)} p99 {format_latency(quantiles.p99_ms)}"
