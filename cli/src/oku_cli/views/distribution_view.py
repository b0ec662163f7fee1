"""Shows the distributions of a run: its latency, and with a rate its response time and lateness as well."""

import base64
from collections.abc import Iterable, Iterator

import msgspec
from rich.console import RenderableType
from rich.text import Text

from oku_cli.terminal.layout import Flow, PairGrid
from oku_cli.terminal.palette import STRONG
from oku_cli.views.histogram_view import build_histogram
from oku_cli.views.timing_view import build_timing
from oku_core.accounting import hdr
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.results.summary import Summary
from oku_core.results.timing_summary import LatencySummary, QuantileIntervals
from oku_core.spec.load import WARM_UP
from oku_core.tables.formatting import choose_digits, format_interval, format_latency

RESPONSE_TIME = "response time"
"""The label of response times, the longest one."""
_NAMES = ("min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max")


def list_distributions(summary: Summary) -> Iterator[tuple[str, RenderableType]]:
    """The quantiles of each distribution with its label, and the bars of what a user of the target waits for.

    With a rate these are response times, as they count from when requests were due.
    """
    figures = {label: figures_ms for label, figures_ms in _pick(summary) if figures_ms.max is not None}
    if "latency" not in figures:
        has_warm_up = any(phase.name == WARM_UP for phase in summary.phases)
        yield "latency", f"nothing was answered{' after the warm-up' if has_warm_up else ''}"
    texts = {label: _format(figures_ms) for label, figures_ms in figures.items()}
    columns = max((len(text) for values in texts.values() for text in values), default=0)
    for label, values in texts.items():
        yield label, _build_quantiles(text.rjust(columns) for text in values)
    shown_ms, encoded = summary.latency_ms, summary.histogram
    intervals_ms = summary.latency_interval_ms
    if summary.response_time_histogram:
        shown_ms, encoded = summary.response_time_ms, summary.response_time_histogram
        intervals_ms = summary.response_time_interval_ms
    if intervals_ms is not None:
        yield "intervals", _build_intervals(intervals_ms)
    if timing := build_timing(summary):
        yield "timing", timing
    if shown_ms.max is not None:
        yield "", ""
        bars = build_histogram(decode_distribution(encoded, shown_ms))
        yield RESPONSE_TIME if summary.response_time_histogram else "", bars


def _build_intervals(intervals_ms: QuantileIntervals) -> Flow:
    """Show between which values the median and the 99th percentile lie; the rest is in the JSON."""
    shown = (("p50", intervals_ms.p50), ("p99", intervals_ms.p99))
    phrases = [f"{name} {format_interval(interval)}" for name, interval in shown if interval]
    return Flow(*phrases, "(95 %)", gap=3)


def decode_distribution(encoded: str, exact: LatencySummary) -> HistogramSnapshot:
    """Decode a distribution of a run, with the exact minimum and maximum, which the exchange format lacks."""
    histogram = hdr.decode(base64.b64decode(encoded)) if encoded else HistogramSnapshot()
    if exact.min is None or exact.max is None:
        return histogram
    return msgspec.structs.replace(histogram, min_us=round(exact.min * 1000), max_us=round(exact.max * 1000))


def _pick(summary: Summary) -> Iterator[tuple[str, LatencySummary]]:
    yield "latency", summary.latency_ms
    yield RESPONSE_TIME, summary.response_time_ms
    yield "lateness", summary.lateness_ms


def _format(figures_ms: LatencySummary) -> list[str]:
    digits = choose_digits((figures_ms.p50, figures_ms.p99))
    return [format_latency(getattr(figures_ms, name.replace(".", "_")), digits) for name in _NAMES]


def _build_quantiles(texts: Iterable[str]) -> PairGrid:
    """Order the quantiles from top to bottom, then to the right."""
    pairs = zip(_NAMES, texts, strict=True)
    return PairGrid(((name, Text(text, style=STRONG)) for name, text in pairs), 4)
