"""Makes the history of a run, and parses the pages that are built from it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from tests.kit.histograms import make_histogram, make_latency
from tests.kit.outcomes import make_counts
from tests.kit.runs.summaries import make_outcomes

from oku_cli.report.history_reader import LeaseBands, RunHistory, RunHistoryReader
from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram, HistogramSnapshot, coarsen
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import LeaseSpan, LeaseState
from oku_core.accounting.measured_time import Time
from oku_core.results.event import Event, EventType
from oku_core.results.run_api import RunPeriod
from oku_core.results.sample import Sample, build_sample
from oku_core.spec.parser import Source, build_mapping, parse_spec
from oku_core.spec.spec import Spec
from oku_core.summary.latency_summary import build_latency_summary
from oku_core.summary.plan_check import PlanSummary
from oku_core.summary.request_summary import NotSentCounts, PhaseSummary
from oku_core.summary.summary import Summary, WorkerSummary

START = 1_769_965_512.0
"""2026-02-01 17:05:12 UTC."""
VOID = frozenset({"meta", "br", "link", "img", "input"})


class Page(HTMLParser):
    """Collects the elements of a page, and checks that they are closed in order.

    Attributes:
        elements: tag and attributes of each element.
        text: all visible text.
        faults: the elements that are not closed, or closed out of order.
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
        """Keep the element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that the element is the one opened last."""
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"{tag} is closed out of order")

    def handle_data(self, data: str) -> None:
        """Keep the text unless it is that of a style or a script."""
        if not self._open or self._open[-1] not in ("style", "script"):
            self.text += data

    def find(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements with this tag."""
        return [attributes for name, attributes in self.elements if name == tag]


@cache
def _measure(values_us: tuple[int, ...]) -> tuple[HistogramSnapshot, HistogramSnapshot]:
    latency = make_latency(values_us)
    return latency, coarsen(latency)


def make_sample(
    second: float,
    values_us: Sequence[int] = (40_000,),
    due_times: Mapping[Time, HistogramSnapshot] = {},
    **changes: Any,
) -> Sample:
    """Make the sample that ends `second` seconds after `START`, with every request `ok` unless changed."""
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
        "outcomes": make_counts(len(values_us)),
        "times": {Time.LATENCY: latency, **due_times},
    }
    sample = build_sample(**fields | changes)
    return msgspec.structs.replace(sample, times={Time.LATENCY: coarse, **due_times})


def make_lease(
    start: int, stop: int, cut_after: float, closed_after: float | None, **changes: Any
) -> LeaseSpan:
    """Make a closed lease, with times in seconds after `START`, unless changed."""
    fields: dict[str, Any] = {
        "id": f"r1.{start}",
        "start": start,
        "stop": stop,
        "state": LeaseState.CLOSED,
        "reason": "",
        "worker": "worker-1",
        "cut_at": START + cut_after,
        "closed_at": None if closed_after is None else START + closed_after,
    }
    return LeaseSpan(**fields | changes)


def make_event(second: float, type_: EventType = EventType.STATE, text: str = "it runs") -> Event:
    """Make an event `second` seconds after `START`."""
    return Event(at=START + second, type=type_, text=text)


@pytest.fixture
def make_summary(make_summary: Callable[..., Summary]) -> Callable[..., Summary]:
    """Makes the same summary for a run of ten seconds."""

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
    """Yield the lines of a history with these fields, without newlines."""
    head = {name: fields[name] for name in ("at", "summary", "spec", "extent", "periods") if name in fields}
    yield msgspec.json.encode(head)[:-1]
    for name in ("samples", "events", "leases", "slices", "again"):
        yield f',"{name}":['.encode()
        for place, thing in enumerate(fields[name]):
            yield (b"," if place else b"") + msgspec.json.encode(thing)
        yield b"]"
    yield b"}"


def band_leases(leases: Sequence[LeaseSpan], requests: int = 1000) -> LeaseBands:
    """Collect these leases of a run as bands."""
    bands = LeaseBands(requests)
    for lease in leases:
        bands.add(lease)
    return bands


@pytest.fixture
def make_history(make_summary: Callable[..., Summary]) -> Callable[..., RunHistory]:
    """Makes the history of that run: ten seconds of 100 requests each and ten leases, unless changed."""

    def make(summary: Summary | None = None, **changes: Any) -> RunHistory:
        summary = summary or make_summary()
        fields: dict[str, Any] = {
            "at": START + 20,
            "summary": summary,
            "spec": build_mapping(Spec(requests=summary.requests, name=summary.name)),
            "extent": summary.requests,
            "samples": [
                make_sample(second, [1000 + 100 * i for i in range(100)], done=100 * second)
                for second in range(1, 11)
            ],
            "events": [make_event(0), make_event(10, text="it is completed")],
            "leases": [make_lease(100 * i, 100 * (i + 1), i, i + 1.0) for i in range(10)],
            "slices": [Slice(0, summary.requests, SliceState.ACCOUNTED)],
            "again": [],
        }
        reader = RunHistoryReader()
        for line in write_lines(**fields | changes):
            reader.read_line(line)
        return reader.finish()

    return make


@pytest.fixture
def make_open_history(
    make_history: Callable[..., RunHistory], make_summary: Callable[..., Summary]
) -> Callable[..., RunHistory]:
    """Makes the history of a run of 100 requests per second for 10 s, of which 2 s are to warm up."""
    histogram = make_histogram(range(1000, 9000))
    encoded, figures = hdr.encode_base64(histogram), build_latency_summary(histogram)
    dues = {Time.RESPONSE_TIME: make_latency([2000]), Time.LATENESS: make_latency([1000])}

    def make_phase(name: str, begin_s: float, end_s: float, requests: int) -> PhaseSummary:
        return PhaseSummary(
            name=name, begin_s=begin_s, end_s=end_s, requests=requests, not_sent=NotSentCounts(),
            outcomes=make_outcomes(ok=requests), statuses={},
            bytes_received=0, due=requests + 4, completed=requests - 1, sent_rps=100.0, completed_rps=97.0,
            planned_rps=100.0, latency_ms=figures, response_time_ms=figures,
            lateness_ms=figures,
        )  # fmt: skip

    def make(**changes: Any) -> RunHistory:
        summary = make_summary(
            histogram,
            response_time_ms=figures,
            response_time_histogram=encoded,
            lateness_ms=figures,
            lateness_histogram=encoded,
            planned_rps=100.0,
            plan=PlanSummary(seconds=9, off_seconds=1, off_share=0.11, missed=3, causes=[]),
            phases=[make_phase("warm-up", 0.0, 2.0, 200), make_phase("main", 2.0, 10.0, 800)],
        )
        fields: dict[str, Any] = {
            "spec": build_mapping(parse_spec(Source(None, {"rate": "100/s", "duration": 10, "warm-up": 2}))),
            "periods": [RunPeriod(START, 0.0, 10.0)],
            "samples": [make_sample(second, due_times=dues, requests_sent=100) for second in range(1, 11)],
        }
        return make_history(summary, **fields | changes)

    return make
