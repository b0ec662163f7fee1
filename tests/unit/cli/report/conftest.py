"""The history of a run to be shown, and what is found in the pages that are made of it."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from oku_cli.report.charts.lease_bands import LeaseBands
from oku_cli.report.run_history import RunHistory, RunHistoryReader
from oku_core.accounting.histogram import Histogram, HistogramSnapshot, coarsen
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import LeaseState
from oku_core.results.event import Event, EventType
from oku_core.results.lease_span import LeaseSpan
from oku_core.results.sample import Sample, build_sample
from oku_core.results.summary import Summary, WorkerSummary
from oku_core.spec.parser import build_mapping
from oku_core.spec.spec import Spec

START = 1_769_965_512.0
"""2026-02-01 17:05:12 UTC."""
VOID = frozenset({"meta", "br", "link", "img", "input"})


class Page(HTMLParser):
    """The elements of a page, and whether they are closed in order.

    Attributes:
        elements: tag and attributes of each.
        text: all that is to be read.
        tags_with_text: the tags around each piece of text.
    """

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(markup)
        self.close()
        self.faults += [f"{tag} is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """It must be the one that was opened last."""
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"{tag} is closed out of order")

    def handle_data(self, data: str) -> None:
        """Keep text, but for styles and scripts."""
        if not self._open or self._open[-1] not in ("style", "script"):
            self.text += data

    def find(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a tag."""
        return [attributes for name, attributes in self.elements if name == tag]


def build_latency(values_us: Sequence[int]) -> HistogramSnapshot:
    """These latencies as a histogram."""
    histogram = Histogram()
    for value_us in values_us:
        histogram.record(value_us)
    return histogram.build_latency()


@cache
def _measure(values_us: tuple[int, ...]) -> tuple[HistogramSnapshot, HistogramSnapshot]:
    latency = build_latency(values_us)
    return latency, coarsen(latency)


def make_sample(second: float, values_us: Sequence[int] = (40_000,), **changes: Any) -> Sample:
    """The second of a run that ends so many seconds after `START`: all was ok; changed as wanted."""
    latency, coarse = _measure(tuple(values_us))
    fields: dict[str, Any] = {
        "at": START + second,
        "seconds": 1.0,
        "requests_total": 1000,
        "accounted": 0,
        "leased": 100,
        "pending": 900,
        "done": 0,
        "resent_at_most": 0,
        "in_flight": 20.0,
        "workers": 2,
        "outcomes": [len(values_us), 0, 0, 0, 0, 0],
        "latency": latency,
    }
    sample = build_sample(**fields | changes)
    return sample if "latency" in changes else msgspec.structs.replace(sample, latency=coarse)


def make_lease(
    start: int, stop: int, cut_after: float, closed_after: float | None, **changes: Any
) -> LeaseSpan:
    """A lease that was reported, with times after `START`; changed as wanted."""
    fields: dict[str, Any] = {
        "id": f"r1.{start}",
        "start": start,
        "stop": stop,
        "state": LeaseState.REPORTED,
        "reason": "",
        "worker": "worker-1",
        "cut_at": START + cut_after,
        "closed_at": None if closed_after is None else START + closed_after,
    }
    return LeaseSpan(**fields | changes)


def make_event(second: float, type_: EventType = EventType.STATE, text: str = "it runs") -> Event:
    """Something that happened so many seconds after `START`."""
    return Event(at=START + second, type=type_, text=text)


@pytest.fixture
def make_summary(make_summary: Callable[..., Summary]) -> Callable[..., Summary]:
    """The same, of a run of ten seconds."""

    def make(histogram: Histogram | None = None, **changes: Any) -> Summary:
        fields: dict[str, Any] = {
            "started_at": "2026-02-01T17:05:12.000Z",
            "ended_at": "2026-02-01T17:05:22.000Z",
            "active_s": 10.0,
            "throughput_rps": 100.0,
            "workers": [
                WorkerSummary(name=name, requests=500, cpu_s=8.1, peak_rss_mb=61.4, lost=False)
                for name in ("worker-1", "worker-2")
            ],
        }
        return make_summary(histogram, **fields | changes)

    return make


def write_lines(**fields: Any) -> Iterator[bytes]:
    """The lines of the history of a run with these fields, without their ends."""
    head = {name: fields[name] for name in ("at", "summary", "spec")}
    yield msgspec.json.encode(head)[:-1]
    for name in ("samples", "events", "leases", "slices"):
        yield f',"{name}":['.encode()
        for place, thing in enumerate(fields[name]):
            yield (b"," if place else b"") + msgspec.json.encode(thing)
        yield b"]"
    yield b"}"


def band_leases(leases: Sequence[LeaseSpan], requests: int = 1000) -> LeaseBands:
    """These leases of a run."""
    bands = LeaseBands(requests)
    for lease in leases:
        bands.add(lease)
    return bands


@pytest.fixture
def make_history(make_summary: Callable[..., Summary]) -> Callable[..., RunHistory]:
    """Makes the history of that run: ten seconds of 100 requests, ten leases; changed as wanted."""

    def make(summary: Summary | None = None, **changes: Any) -> RunHistory:
        summary = summary or make_summary()
        fields: dict[str, Any] = {
            "at": START + 20,
            "summary": summary,
            "spec": build_mapping(Spec(requests=summary.requests, name=summary.name)),
            "samples": [
                make_sample(second, [1000 + 100 * i for i in range(100)], done=100 * second)
                for second in range(1, 11)
            ],
            "events": [make_event(0), make_event(10, text="it is completed")],
            "leases": [make_lease(100 * i, 100 * (i + 1), i, i + 1.0) for i in range(10)],
            "slices": [Slice(0, summary.requests, SliceState.ACCOUNTED)],
        }
        reader = RunHistoryReader()
        for line in write_lines(**fields | changes):
            reader.take(line)
        return reader.finish()

    return make
