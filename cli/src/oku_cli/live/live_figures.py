"""Draws the figures of a run that change every second: rates, times, distributions, where its plan is."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from oku_cli.live.trend import Quantiles, Trend, has_open_end, has_rate, may_end_early
from oku_cli.terminal.console import BAD, CAUTION, STRONG
from oku_cli.terminal.layout import Flow, PairGrid
from oku_cli.terminal.printable import make_printable
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import NOT_SENT_CAUSES
from oku_core.summary.request_summary import FailureSummary
from oku_core.summary.tick import Tick
from oku_core.summary.validity import MOST_SKEW_S
from oku_core.tables.formatting import (
    format_count,
    format_elapsed,
    format_latency,
    format_left,
    format_outcome,
    format_rate,
)

NOTABLE_BOUND_S = 0.001
"""A clock that is known worse than this is shown: lateness is measured in fractions of a millisecond."""
_QUANTILE_COLUMNS = len("999 ms") + 1
_OTHER_COLUMNS = 20, 10, 18
"""The widths of the values on the left, and of the labels and the values on the right."""


class TickRates(NamedTuple):
    """Requests planned, sent and ended in a second of a run with a rate, per second."""

    planned_rps: float
    sent_rps: float
    ended_rps: float


Pairs = tuple[tuple[str, str], ...]


def build_figure_grid(tick: Tick, trend: Trend, label_columns: int) -> PairGrid:
    """Show rates, times and counts in columns of fixed widths: they stay in place as numbers change."""
    list_pairs = _list_open if has_rate(tick) else _list_closed
    labels, values, other_labels, other_values = label_columns + 1, *_OTHER_COLUMNS
    left, right = list_pairs(tick, trend)
    pairs = [(label.ljust(labels), value.ljust(values)) for label, value in left]
    pairs += [(label.ljust(other_labels), value.ljust(other_values)) for label, value in right]
    return PairGrid([(label, Text(value, style=STRONG)) for label, value in pairs], 2, "left")


def measure_tick_rates(tick: Tick) -> TickRates:
    """The rates of a second; one that is shorter counts as a whole one."""
    sample = tick.sample
    seconds = max(1.0, sample.seconds)
    return TickRates(
        (sample.requests_planned or 0) / seconds, sample.requests_sent / seconds, sample.rate_rps
    )


def describe_total(tick: Tick) -> str:
    """How many requests a run has, or has at most; empty if only a time ends it."""
    if has_open_end(tick):
        return ""
    most = "at most " if may_end_early(tick) else ""
    return f"{most}{format_count(tick.sample.requests_total)}"


def list_plan(tick: Tick) -> Iterator[tuple[str, RenderableType]]:
    """Where the plan of a run is, and how well its clock is known if that is worth a look, with labels."""
    if tick.sample.phase:
        left = () if tick.phase_left_s is None else (f"{format_left(tick.phase_left_s)} left",)
        yield "phase", Flow(Text(tick.sample.phase, style=STRONG), *left, gap=2)
    if (bound_s := tick.sample.clock_bound_s or 0.0) >= NOTABLE_BOUND_S:
        style = CAUTION if bound_s > MOST_SKEW_S else ""
        yield "clock", Text(f"a worker knows it to within {format_latency(bound_s * 1000)}", style=style)


def list_live_times(tick: Tick, trend: Trend) -> Iterator[tuple[str, RenderableType]]:
    """The three distributions of a run with a rate, with labels; none of another run."""
    if has_rate(tick):
        for time, quantiles in trend.times.items():
            yield time.label, _build_quantiles(quantiles)


def list_failures(tick: Tick) -> Iterator[tuple[str, RenderableType]]:
    """The most frequent reasons for which accounted requests failed, with a label; nothing if all are ok."""
    shown = [Text(describe_reason(failure), style=BAD) for failure in tick.failures]
    if shown:
        yield "failures", Flow(*shown, gap=3)


def describe_reason(failure: FailureSummary) -> str:
    """A reason with its count."""
    target = f"{failure.target}: " if failure.target else ""
    return f"{make_printable(target + failure.reason)} {format_count(failure.requests)}"


def list_causes(tick: Tick) -> Iterator[tuple[str, RenderableType]]:
    """Why accounted requests were not sent, with a label; nothing if all were."""
    causes = zip(NOT_SENT_CAUSES, tick.not_sent, strict=True)
    shown = [
        Text(f"{format_outcome(cause)} {format_count(count)}", style=BAD) for cause, count in causes if count
    ]
    if shown:
        yield "not sent", Flow(*shown, gap=3)


def _list_closed(tick: Tick, trend: Trend) -> tuple[Pairs, Pairs]:
    sample = tick.sample
    in_flight = format_count(round(sample.in_flight or 0))
    if tick.planned_in_flight is not None:
        in_flight += f" of {format_count(tick.planned_in_flight)}"
    return (
        ("rate", format_rate(sample.rate_rps)),
        ("average", format_rate(trend.average_rps)),
        ("in flight", in_flight),
        ("workers", format_count(sample.workers or 0)),
    ), (
        ("p50", format_latency(trend.times[Time.LATENCY].p50_ms)),
        ("p99", format_latency(trend.times[Time.LATENCY].p99_ms)),
        ("elapsed", format_elapsed(sample.active_s)),
        ("left", format_left(trend.left_s)),
    )


def _list_open(tick: Tick, trend: Trend) -> tuple[Pairs, Pairs]:
    sample, rates = tick.sample, measure_tick_rates(tick)
    return (
        ("planned", format_rate(rates.planned_rps)),
        ("sent", format_rate(rates.sent_rps)),
        ("ended", format_rate(rates.ended_rps)),
        ("average", format_rate(trend.average_rps)),
    ), (
        ("in flight", format_count(round(sample.in_flight or 0))),
        ("workers", format_count(sample.workers or 0)),
        ("elapsed", format_elapsed(sample.active_s)),
        ("left", format_left(trend.left_s)),
    )


def _build_quantiles(quantiles: Quantiles) -> Flow:
    texts = (format_latency(value_ms).rjust(_QUANTILE_COLUMNS) for value_ms in quantiles)
    named = zip(("p50", "p99"), texts, strict=True)
    return Flow(*(Text.assemble(f"{name} ", (text, STRONG)) for name, text in named), gap=3)
