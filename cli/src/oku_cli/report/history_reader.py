"""Everything that a report shows of a run, read line by line from the history that the coordinator writes.

A run may have millions of leases, too many to distinguish in a chart, so the memory for them is bounded: the
ranges of each lease or, of very many, bands along rows of the request space and time steps. The steps grow
with the run, as the steps of its samples do, so that there are never more than a few thousand bands.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from oku_core.accounting.index_ranges import Range
from oku_core.accounting.interval import Slice
from oku_core.accounting.lease_state import LeaseSpan, LeaseState
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.results.coverage import AGAIN, Coverage
from oku_core.results.event import Event
from oku_core.results.run_api import RunPeriod
from oku_core.results.sample import Sample
from oku_core.spec.parser import Source, SpecError, parse_spec
from oku_core.spec.spec import Spec
from oku_core.summary.summary import Summary

MOST_BANDS = 5000


_ROWS = 250
"""More rows could not be distinguished in a chart."""


@dataclass(slots=True)
class Band:
    """Neighbouring ranges of leases of one state: from the first to the last in time and request space.

    `closed_at` is None while they are active.
    """

    state: LeaseState
    start: int
    stop: int
    cut_at: float
    closed_at: float | None


class LeaseBands:
    """The leases of a run, as bands.

    Args:
        extent: the index behind the last one of its request space that is shown.
    """

    def __init__(self, extent: int) -> None:
        self._extent = extent
        self._step_s = 0.5
        self.bands: list[Band] = []
        self.are_merged = False
        """Whether a band may stand for several leases."""
        self.counts: Counter[LeaseState] = Counter()
        """The number of leases in each state."""

    def __len__(self) -> int:
        """Return the number of leases, not of bands."""
        return self.counts.total()

    def add(self, lease: LeaseSpan) -> None:
        """Add a lease, and merge bands if there are too many."""
        self.counts[lease.state] += 1
        for start, stop in lease.ranges or [(lease.start, lease.stop)]:
            self.bands.append(Band(lease.state, start, stop, lease.cut_at, lease.closed_at))
        if len(self.bands) > MOST_BANDS:
            self._merge()
            while len(self.bands) > MOST_BANDS // 2:
                self._step_s *= 2
                self._merge()

    def _merge(self) -> None:
        merged: dict[tuple[LeaseState, int, int], Band] = {}
        for band in self.bands:
            place = band.state, int(band.cut_at // self._step_s), band.start * _ROWS // self._extent
            other = merged.get(place)
            merged[place] = band if other is None else _join(other, band)
        self.are_merged = self.are_merged or len(merged) < len(self.bands)
        self.bands = list(merged.values())


def _join(band: Band, other: Band) -> Band:
    band.start, band.stop = min(band.start, other.start), max(band.stop, other.stop)
    band.cut_at = min(band.cut_at, other.cut_at)
    if band.closed_at is not None and other.closed_at is not None:
        band.closed_at = max(band.closed_at, other.closed_at)
    return band


@dataclass(frozen=True, kw_only=True)
class RunHistory:
    """A run and how it went.

    Attributes:
        at: the Unix time at which the history was written.
        summary: the summary of the run.
        spec: its spec, under the names that users write.
        extent: the index behind the last one that is shown of its request space; at least 1.
        periods: when its clock ran, if it has a rate or a time that ends it.
        samples: its samples, oldest first.
        events: its events, oldest first.
        leases: the outcomes of its leases.
        coverage: how far its request space is covered, and which parts may have been sent again.
    """

    at: float
    summary: Summary
    spec: dict[str, Any]
    extent: int
    periods: list[RunPeriod]
    samples: list[Sample]
    events: list[Event]
    leases: LeaseBands
    coverage: Coverage


class RunHistoryHead(msgspec.Struct):
    """What the first line of a history holds."""

    at: float
    summary: Summary
    spec: dict[str, Any]
    extent: int
    periods: list[RunPeriod] = []


_HEAD: JsonDecoder[RunHistoryHead] = JsonDecoder(RunHistoryHead)


class RunHistoryReader:
    """Reads the history of a run, line by line."""

    def __init__(self) -> None:
        self._history: RunHistory | None = None
        self._list = ""
        self._decoders: dict[str, JsonDecoder[Any]] = {
            "samples": JsonDecoder(Sample),
            "events": JsonDecoder(Event),
            "leases": JsonDecoder(LeaseSpan),
            "slices": JsonDecoder(Slice),
            "again": JsonDecoder(Range),
        }
        self._is_whole = False

    def read_line(self, line: bytes) -> None:
        """Take the next line, without its newline; raise `ValueError` if it does not belong to a history."""
        try:
            self._take(line)
        except (JsonError, KeyError) as error:
            raise ValueError(str(error)) from error

    def _take(self, line: bytes) -> None:
        if self._history is None:
            self._history = _begin_history(decode_head(line))
        elif line.startswith(b',"'):
            self._list = line.split(b'"')[1].decode()
        elif line == b"]":
            self._list = ""
        elif line == b"}":
            self._is_whole = True
        else:
            self._keep(self._history, self._decoders[self._list].decode(line.removeprefix(b",")))

    def finish(self) -> RunHistory:
        """Return the history that the lines make up; raise `ValueError` if some are missing."""
        if self._history is None or not self._is_whole:
            raise ValueError("it is cut off")
        return self._history

    def _keep(self, history: RunHistory, thing: Any) -> None:
        if self._list == "samples":
            history.samples.append(thing)
        elif self._list == "events":
            history.events.append(thing)
        elif self._list == "leases":
            history.leases.add(thing)
        elif self._list == "again":
            history.coverage.add(AGAIN, *thing)
        else:
            history.coverage.add(thing.state, thing.start, thing.stop)


def decode_head(line: bytes) -> RunHistoryHead:
    """Decode the first line of a history; its JSON object is closed only by the last line."""
    return _HEAD.decode(line + b"}")


def _begin_history(head: RunHistoryHead) -> RunHistory:
    extent = max(1, head.extent)
    return RunHistory(
        at=head.at,
        summary=head.summary,
        spec=head.spec,
        extent=extent,
        periods=head.periods,
        samples=[],
        events=[],
        leases=LeaseBands(extent),
        coverage=Coverage(extent),
    )


_KEYS = (
    "requests", "rate", "duration", "stages", "arrivals", "late", "warm-up", "max-rate", "concurrency",
)  # fmt: skip

_USER_CODE_KEYS = ("engine", "scenario", "users")


def read_load(spec: Mapping[str, Any]) -> Spec | None:
    """Build a spec that has the load of another, and defaults for all else; None if it is not understood."""
    keys = (*_KEYS, *_USER_CODE_KEYS) if "scenario" in spec else _KEYS
    load = {key: spec[key] for key in keys if key in spec}
    # The default of `requests` depends on the target.
    target = {"url": "http://target/"} if "url" in spec else {}
    try:
        return parse_spec(Source("spec", load | target))
    except SpecError:
        return None
