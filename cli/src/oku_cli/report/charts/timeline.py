"""Builds the time axis that all charts of a run share, and merges its samples into the columns of the charts.

A pause of any length becomes a narrow band. The counts of merged samples are added up, and their quantiles
are computed from the merged latencies.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import msgspec

from oku_cli.report.charts.scale import AxisTick
from oku_cli.report.history_reader import Band
from oku_core.accounting.lease_state import LeaseState
from oku_core.results.sample import Sample, merge_samples
from oku_core.tables.formatting import format_since

MOST_COLUMNS = 480
"""More could not be distinguished in a chart of 1,000 pixels, and each makes the page larger."""
PAUSE_S = 20.0
"""A longer time without samples is drawn as a pause, for any cause."""
_GAP_S = 2.0
"""Lines break at longer gaps between samples; a shorter one is only a late tick."""
_SHORTEST_S = 0.25
_PAUSE_SHARE = 0.03
"""The width of a pause, as a fraction of the axis."""
_MOST_PAUSES_SHARE = 0.3
_MOST_TICKS = 8
_LADDER_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


@dataclass(frozen=True)
class Timeline:
    """Maps Unix times to positions from 0 to 1.

    Attributes:
        spans: start and end of each stretch of time between pauses, in order and without overlap.
    """

    spans: tuple[tuple[float, float], ...]

    @property
    def start(self) -> float:
        """The Unix time at which the axis starts."""
        return self.spans[0][0]

    @property
    def active_s(self) -> float:
        """The total length of all spans."""
        return sum(stop - start for start, stop in self.spans)

    @property
    def pauses(self) -> list[tuple[float, float]]:
        """The left and right end of each pause, from 0 to 1."""
        return [(stop, start) for (_, stop), (start, _) in pairwise(self._edges)]

    def find_span(self, at: float) -> int:
        """Return the index of the last span that had started at that time, or of the first one."""
        return max(0, bisect_right(self.spans, at, key=lambda span: span[0]) - 1)

    def place(self, at: float) -> float:
        """Return the position of a time, from 0 to 1; times outside the spans are clamped to the ends."""
        edges = self._edges
        number = self.find_span(at)
        start, stop = self.spans[number]
        left, right = edges[number]
        if at <= stop:
            return left + (right - left) * (max(at, start) - start) / (stop - start)
        if number + 1 == len(self.spans):
            return right
        begin = self.spans[number + 1][0]
        return right + (edges[number + 1][0] - right) * (at - stop) / (begin - stop)

    def build_ticks(self) -> list[AxisTick]:
        """Build ticks at round times since the start; every other one is minor."""
        longest = 86400 * math.ceil(self.active_s / _MOST_TICKS / 86400)
        step = next((step for step in _LADDER_S if self.active_s / step <= _MOST_TICKS), longest)
        ticks = []
        for start, stop in self.spans:
            first = -int(-(start - self.start) // step)
            last = int((stop - self.start) // step)
            ticks += [number * step for number in range(first, last + 1)]
        return [
            AxisTick(self.place(self.start + seconds), format_since(seconds), is_minor=bool(number % 2))
            for number, seconds in enumerate(ticks)
        ]

    @cached_property
    def _edges(self) -> list[tuple[float, float]]:
        """The left and right end of each span."""
        pauses = len(self.spans) - 1
        pause = min(_PAUSE_SHARE, _MOST_PAUSES_SHARE / pauses) if pauses else 0.0
        width = (1 - pauses * pause) / self.active_s
        edges, at = [], 0.0
        for start, stop in self.spans:
            edges.append((at, at + (stop - start) * width))
            at = edges[-1][1] + pause
        return edges


def build_timeline(samples: Sequence[Sample], leases: Sequence[Band]) -> Timeline | None:
    """Build the axis for samples or, if there are none, for closed leases; None if there are neither."""
    pieces = [(sample.at - sample.seconds, sample.at) for sample in samples] or [
        (band.cut_at, band.closed_at)
        for band in leases
        if band.closed_at is not None and band.state == LeaseState.CLOSED
    ]
    spans = tuple(_join(sorted(pieces)))
    return Timeline(spans) if any(stop > start for start, stop in spans) else None


def clip_start(samples: Sequence[Sample], starts_at: float) -> Sequence[Sample]:
    """Leave out the time before a run's clock started, as far as nothing ended in it."""
    first = next(
        (place for place, sample in enumerate(samples) if _has_begun(sample, starts_at)), len(samples)
    )
    # A fraction of a second does not show the rate.
    joined = 2 if samples[first:] and samples[first].at - starts_at < _SHORTEST_S else 1
    begin = samples[first : first + joined]
    if not begin or begin[-1].at - starts_at < _SHORTEST_S:
        return samples[first:]
    whole = merge_samples(begin)
    seconds = min(whole.seconds, whole.at - starts_at)
    return [msgspec.structs.replace(whole, seconds=seconds), *samples[first + joined :]]


def build_columns(samples: Sequence[Sample], timeline: Timeline, most: int = MOST_COLUMNS) -> list[Sample]:
    """Merge samples along equal time steps into at most about `most` columns.

    A short remainder at the end of a span is merged into the column before it: a fraction of a second does
    not show the rate.
    """
    step_s = next((step for step in _LADDER_S if timeline.active_s / step <= most), _LADDER_S[-1])
    steps_by_span: dict[int, dict[float, list[Sample]]] = {}
    for sample in samples:
        middle = sample.at - sample.seconds / 2
        # Samples are a little longer or shorter than one second: each becomes a column of its own.
        step = middle if step_s == 1 else (middle - timeline.start) // step_s
        steps_by_span.setdefault(timeline.find_span(middle), {}).setdefault(step, []).append(sample)
    columns = []
    for steps in steps_by_span.values():
        groups = list(steps.values())
        if len(groups) > 1 and _measure_s(groups[-1]) < _measure_s(groups[-2]) / 2:
            groups[-2:] = [[*groups[-2], *groups[-1]]]
        columns += [merge_samples(group) for group in groups]
    return columns


def cut_at_gaps(columns: Sequence[Sample], timeline: Timeline) -> Iterator[list[int]]:
    """Yield the indices of consecutive columns in groups; lines break between the groups.

    The gap is a pause, or a time for which the coordinator has no samples.
    """
    group: list[int] = []
    for index, sample in enumerate(columns):
        if group and _are_apart(columns[index - 1], sample, timeline):
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _are_apart(before: Sample, after: Sample, timeline: Timeline) -> bool:
    spans = [timeline.find_span(sample.at - sample.seconds / 2) for sample in (before, after)]
    missing_s = after.at - after.seconds - before.at
    return spans[0] != spans[1] or missing_s > max(_GAP_S, after.seconds)


def _has_begun(sample: Sample, starts_at: float) -> bool:
    return sample.at > starts_at or any(sample.outcomes)


def _measure_s(samples: Iterable[Sample]) -> float:
    return sum(sample.seconds for sample in samples)


def _join(pieces: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    spans: list[tuple[float, float]] = []
    for start, stop in pieces:
        if spans and start - spans[-1][1] <= PAUSE_S:
            spans[-1] = spans[-1][0], max(spans[-1][1], stop)
        else:
            spans.append((start, stop))
    return spans
