"""Builds the tables of measured times: the distributions of a run, and how the time of requests is split."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from oku_core.accounting import hdr
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.summary.latency_summary import LatencySummary, QuantileIntervals
from oku_core.summary.request_summary import RequestSummary, TargetSummary
from oku_core.summary.summary import Summary, Unit
from oku_core.tables.formatting import choose_digits, format_latency
from oku_core.tables.table import Cell, Column, Quantity, Rank, Role, Table, Value, build_table


class ShownTime(NamedTuple):
    """A measured time as it is shown.

    Attributes:
        key: which it is.
        detail: from where to where it is measured.
        counted: which requests have it.
    """

    key: Time
    detail: str
    counted: str

    @property
    def label(self) -> str:
        """Its name for people."""
        return self.key.label

    def find_label(self, unit: Unit) -> str:
        """The same in a run that counts this unit: an iteration has a duration, think times included."""
        return "iteration" if unit is Unit.ITERATION and self.key is Time.LATENCY else self.label

    def pick(self, part: RequestSummary) -> LatencySummary:
        """The figures of this time in a summary or a part of one."""
        return part.find_latency(self.key)

    def pick_intervals(self, summary: Summary) -> QuantileIntervals | None:
        """The intervals around its quantiles; None if there are none, as of lateness."""
        intervals: QuantileIntervals | None = getattr(summary, f"{self.key}_interval_ms", None)
        return intervals

    def decode(self, summary: Summary) -> HistogramSnapshot:
        """Decode its distribution, with the exact minimum and maximum, which the exchange format lacks."""
        encoded: str = summary.histogram if self is LATENCY else getattr(summary, f"{self.key}_histogram")
        histogram = hdr.decode(base64.b64decode(encoded)) if encoded else HistogramSnapshot()
        exact = self.pick(summary)
        if exact.min is None or exact.max is None:
            return histogram
        return msgspec.structs.replace(
            histogram, min_us=round(exact.min * 1000), max_us=round(exact.max * 1000)
        )


class ShownStep(NamedTuple):
    """A step of a request as it is shown: its names, and from where to where it is measured.

    A step of connecting is one that a request on a kept connection does not have.
    """

    key: str
    label: str
    detail: str
    is_connecting: bool = False


LATENCY = ShownTime(Time.LATENCY, "sent to end", "answered requests")
TIMES = (
    LATENCY,
    ShownTime(Time.RESPONSE_TIME, "due to end", "answered requests"),
    ShownTime(Time.LATENESS, "due to sent", "requests that were sent and have ended"),
)
"""The times whose distributions are shown; all but the first exist in runs with a rate alone."""
STEPS = (
    ShownStep("connect", "connect", "TCP, of requests for which a connection was made", is_connecting=True),
    ShownStep("tls", "TLS", "handshake on these connections", is_connecting=True),
    ShownStep("first_byte", "first byte", "sent to first byte of the answer"),
    ShownStep("transfer", "transfer", "first byte to end of the answer"),
)
"""The steps of a request."""
FIGURES = ("min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max")
"""The figures of a distribution, as fields of its summary."""
_FEW_CONNECTIONS = 0.01
_STEP_FIGURES = {
    "min": Rank.SPARE, "mean": Rank.SPARE, "p50": Rank.ESSENTIAL, "p90": Rank.SPARE, "p99": Rank.ESSENTIAL,
    "max": Rank.USEFUL,
}  # fmt: skip


def name_figure(figure: str) -> str:
    """The name of a figure for people: `p99.9`."""
    return figure.replace("_", ".")


def list_times(parts: Sequence[RequestSummary]) -> list[ShownTime]:
    """List the times that some of these parts of a run have, and the latency in any case."""
    return [
        time for time in TIMES if time is LATENCY or any(time.pick(part).max is not None for part in parts)
    ]


def build_time_columns(times: Sequence[ShownTime], figures: Mapping[str, Rank]) -> list[Column]:
    """Build a column for each figure of each time, in groups."""
    return [
        Column(
            key=f"{time.key}_{figure}",
            head=name_figure(figure),
            quantity=Quantity.LATENCY,
            group=time.label,
            rank=rank,
        )
        for time in times
        for figure, rank in figures.items()
    ]


def list_figures(part: RequestSummary, times: Sequence[ShownTime], figures: Iterable[str]) -> list[Value]:
    """List the values for `build_time_columns`."""
    return [getattr(time.pick(part), figure) for time in times for figure in figures]


def build_times(summary: Summary) -> Table:
    """Build the table of all distributions of a run: a row for each figure, a column for each time."""
    times = [time for time in TIMES if time.pick(summary).max is not None]
    columns = [Column(key="figure", head="", role=Role.NAME)]
    columns += [
        Column(
            key=time.key,
            head=time.find_label(summary.unit),
            quantity=Quantity.LATENCY,
            detail=time.detail,
        )
        for time in times
    ]
    rows: Iterator[list[Value]] = (
        [name_figure(figure), *_list_cells(summary, times, figure)] for figure in (FIGURES if times else ())
    )
    return build_table("times", "Figures", columns, rows)


def build_steps(summary: Summary) -> Table:
    """Build the table of how the time of requests is split; it has no rows if nothing was measured."""
    columns = [Column(key="step", head="", role=Role.NAME)]
    columns.append(Column(key="requests", head="requests", quantity=Quantity.COUNT))
    columns += [
        Column(key=figure, head=figure, quantity=Quantity.LATENCY, rank=rank)
        for figure, rank in _STEP_FIGURES.items()
    ]
    return build_table("steps", "Connections and transfer", columns, _iter_steps(summary))


def list_notable_steps(summary: Summary) -> list[ShownStep]:
    """List the steps of requests that add to the latency's information.

    Making connections does where one was made for more than a hundredth of the requests, or with TLS; first
    byte and transfer do where more than a hundredth of the answers came in several pieces.
    """
    timing = summary.timing_ms
    has_connections = timing.tls.requests or timing.connect.requests > _FEW_CONNECTIONS * summary.accounted
    return [step for step in STEPS if (has_connections if step.is_connecting else timing.transfer.p99)]


def build_target_steps(targets: Sequence[TargetSummary]) -> Table:
    """Build the table of the 99th percentiles of each step by target."""
    columns = [Column(key="target", head="target", role=Role.NAME)]
    columns += [Column(key=step.key, head=step.label, quantity=Quantity.LATENCY) for step in STEPS]
    rows: Iterator[list[Value]] = (
        [target.name, *(_build_step_cell(step.p99) for _, step in target.timing_ms.list_steps())]
        for target in targets
    )
    return build_table("target_steps", "99th percentiles by target", columns, rows)


def _list_cells(summary: Summary, times: Sequence[ShownTime], figure: str) -> Iterator[Cell]:
    for time in times:
        figures = time.pick(summary)
        value = getattr(figures, figure)
        yield Cell(text=format_latency(value, choose_digits((figures.p50, figures.p99))), value=value)


def _iter_steps(summary: Summary) -> Iterator[list[Value]]:
    for shown, (_, step) in zip(STEPS, summary.timing_ms.list_steps(), strict=True):
        if step.requests:
            cells = (_build_step_cell(getattr(step, figure)) for figure in _STEP_FIGURES)
            yield [Cell(text=shown.label, detail=shown.detail), step.requests, *cells]


def _build_step_cell(time_ms: float | None) -> Cell:
    """The transfer of most answers takes no time."""
    return Cell(text="0 ms" if time_ms == 0 else format_latency(time_ms), value=time_ms)
