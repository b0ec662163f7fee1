import math
from typing import Any

import msgspec
import pytest
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.process_ends import HostEnd, HostEndReason
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress


def build_progress(**changes: Any) -> Progress:
    """A second of a worker that answered two requests."""
    progress = Progress(
        worker="w1",
        incarnation="b1",
        at=1.7e9,
        leases={"l1": LeaseProgress(4, 9, make_counts(2))},
        runs={"r1": build_done(), "r2": RunProgress()},
    )
    return msgspec.structs.replace(progress, **changes)


def build_done(**changes: Any) -> RunProgress:
    """What it did of one run."""
    latency = HistogramSnapshot(buckets=[5, 2], sum_us=10, min_us=5, max_us=5)
    return msgspec.structs.replace(
        RunProgress(outcomes=make_counts(2), times={Time.LATENCY: latency}), **changes
    )


def build_end(**changes: Any) -> HostEnd:
    """The end of a process of user code."""
    end = HostEnd(run="r1", number=1, reason=HostEndReason.KILLED, text="it was killed", requests=2)
    return msgspec.structs.replace(end, **changes)


def test_true_progress_passes() -> None:
    """Neither a second with answers nor an idle one has a fault."""
    assert build_progress().find_fault() is None
    assert build_progress(host_ends=[build_end(), build_end(number=2, requests=0)]).find_fault() is None
    assert Progress(worker="w1", incarnation="b1", at=0.0).find_fault() is None


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"troubles": ["a"] * 11}, "its troubles are more than 10, or not single lines"),
        ({"troubles": ["a\nb"]}, "its troubles are more than 10, or not single lines"),
        ({"leases": {"l1": LeaseProgress(0, 0, [0] * 7)}}, "the outcomes are not a count for each"),
        ({"leases": {"l1": LeaseProgress(2, 1, build_no_counts())}}, "a lease has taken more than there is"),
        ({"leases": {"l1": LeaseProgress(-1, 1, build_no_counts())}}, "a lease has taken more than there is"),
        ({"at": math.nan}, "a figure is negative or not a number"),
        ({"cpu_share": math.nan}, "a figure is negative or not a number"),
        ({"clock_bound_s": -0.1}, "a figure is negative or not a number"),
        ({"coordinator_at": math.nan}, "a figure is negative or not a number"),
        ({"rss_mb": -0.1}, "a figure is negative or not a number"),
        ({"seconds": 0.0}, "it tells of 0.0 s"),
        ({"seconds": math.inf}, "it tells of inf s"),
        ({"host_ends": [build_end()] * 11}, "it reports the ends of more than 10 processes"),
        ({"host_ends": [build_end(text="a\nb")]}, "the end of a process is not described in one line"),
        ({"host_ends": [build_end(text="a" * 201)]}, "the end of a process is not described in one line"),
        ({"host_ends": [build_end(requests=-1)]}, "a process had a negative number of iterations in hand"),
    ],
)
def test_the_fault_of_impossible_progress_is_named(changes: dict[str, Any], fault: str) -> None:
    """Progress that would keep the coordinator from making a tick is rejected before."""
    assert build_progress(**changes).find_fault() == fault


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"outcomes": [1] * 5}, "the outcomes are not a count for each"),
        ({"outcomes": [1, 1, 1, 1, 1, -1]}, "the outcomes are not a count for each"),
        ({"in_flight": -1}, "a figure is negative or not a number"),
        ({"bytes_received": -1}, "a figure is negative or not a number"),
        ({"sent": -1}, "a figure is negative or not a number"),
        ({"lag_s": math.inf}, "a figure is negative or not a number"),
        ({"times": {Time.RESPONSE_TIME: HistogramSnapshot(buckets=[5])}}, "buckets do not come in pairs"),
        ({"times": {Time.LATENESS: HistogramSnapshot(buckets=[5])}}, "buckets do not come in pairs"),
        ({"times": {Time.LATENCY: HistogramSnapshot(buckets=[-1, 2])}}, "a bucket index is out of range"),
    ],
)
@pytest.mark.parametrize("run", ["r1", "r2"])
def test_the_figures_of_every_run_are_looked_at(run: str, changes: dict[str, Any], fault: str) -> None:
    """A fault in those of one run rejects all of it."""
    progress = build_progress()
    progress.runs[run] = build_done(**changes)
    assert progress.find_fault() == fault


def test_seconds_do_not_share_their_defaults() -> None:
    """Each second has its own empty defaults."""
    first, second = (
        Progress(worker="w", incarnation="b", at=0.0),
        Progress(worker="w", incarnation="b", at=0.0),
    )
    first.leases["l1"] = LeaseProgress(0, 0, build_no_counts())
    first.specs.append("r1")
    first.runs["r1"] = RunProgress()
    first.runs["r1"].outcomes[0] += 1
    assert (second.leases, second.specs, second.runs) == ({}, [], {})
    assert RunProgress().outcomes == build_no_counts()
    # A second has no figures by default.
    second = Progress(worker="w", incarnation="b", at=0.0)
    done = RunProgress()
    figures = (done.in_flight, done.bytes_received, done.lag_s, second.cpu_share, second.rss_mb)
    assert figures == (0, 0, 0, 0, 0)
    assert done.histogram(Time.LATENCY) == HistogramSnapshot()
    assert second.stopping is False
