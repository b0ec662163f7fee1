"""Everything that a report shows of a run, read line by line from the history that the coordinator writes.

A run may have millions of leases, which nobody could tell apart in a chart: what is kept of them is bounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from oku_cli.report.lease_bands import LeaseBands
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.interval import Slice
from oku_core.accounting.lease_state import LeaseSpan
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.results.coverage import AGAIN, Coverage
from oku_core.results.event import Event
from oku_core.results.run_api import RunPeriod
from oku_core.results.sample import Sample
from oku_core.spec.parser import Source, SpecError, parse_spec
from oku_core.spec.spec import Spec
from oku_core.summary.summary import Summary


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
        leases: what became of its leases.
        coverage: how far its request space is covered, and what of it may have been sent again.
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

    def take(self, line: bytes) -> None:
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
