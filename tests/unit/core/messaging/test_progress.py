import math
from typing import Any

import msgspec
import pytest

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.messaging.progress import LeaseProgress, Progress


def build_progress(**changes: Any) -> Progress:
    """A second of a worker that answered two requests."""
    progress = Progress(
        worker="w1",
        incarnation="b1",
        at=1.7e9,
        leases={"l1": LeaseProgress(4, 9, [2, 0, 0, 0, 0, 0])},
        outcomes=[2, 0, 0, 0, 0, 0],
        latency=HistogramSnapshot(buckets=[5, 2], sum_us=10, min_us=5, max_us=5),
    )
    return msgspec.structs.replace(progress, **changes)


def test_true_progress_passes() -> None:
    """Neither a second with answers nor an idle one has a fault."""
    assert build_progress().find_fault() is None
    assert Progress(worker="w1", incarnation="b1", at=0.0).find_fault() is None


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"troubles": ["a"] * 11}, "its troubles are more than 10, or not single lines"),
        ({"troubles": ["a\nb"]}, "its troubles are more than 10, or not single lines"),
        ({"outcomes": [1] * 5}, "the outcomes are not six counts"),
        ({"outcomes": [1, 1, 1, 1, 1, -1]}, "the outcomes are not six counts"),
        ({"leases": {"l1": LeaseProgress(0, 0, [0] * 7)}}, "the outcomes are not six counts"),
        ({"leases": {"l1": LeaseProgress(2, 1, [0] * 6)}}, "a lease has taken more than there is"),
        ({"leases": {"l1": LeaseProgress(-1, 1, [0] * 6)}}, "a lease has taken more than there is"),
        ({"at": math.nan}, "a figure is negative or not a number"),
        ({"in_flight": -1}, "a figure is negative or not a number"),
        ({"bytes_received": -1}, "a figure is negative or not a number"),
        ({"lag_s": math.inf}, "a figure is negative or not a number"),
        ({"cpu_share": math.nan}, "a figure is negative or not a number"),
        ({"rss_mb": -0.1}, "a figure is negative or not a number"),
        ({"seconds": 0.0}, "it tells of 0.0 s"),
        ({"seconds": math.inf}, "it tells of inf s"),
        ({"latency": HistogramSnapshot(buckets=[-1, 2])}, "a bucket index is out of range"),
    ],
)
def test_the_fault_of_impossible_progress_is_named(changes: dict[str, Any], fault: str) -> None:
    """Progress that would keep the coordinator from making a tick is rejected before."""
    assert build_progress(**changes).find_fault() == fault


def test_seconds_do_not_share_their_counts() -> None:
    """Each second has its own empty defaults."""
    first, second = (
        Progress(worker="w", incarnation="b", at=0.0),
        Progress(worker="w", incarnation="b", at=0.0),
    )
    first.outcomes[0] += 1
    first.leases["l1"] = LeaseProgress(0, 0, [0] * 6)
    first.specs.append("r1")
    assert (second.outcomes, second.leases, second.specs) == ([0] * 6, {}, [])


def test_a_second_has_no_figures_by_default() -> None:
    """A field that a worker leaves out counts as zero, and a worker that does not say so is not stopping."""
    second = Progress(worker="w", incarnation="b", at=0.0)
    figures = (second.in_flight, second.bytes_received, second.lag_s, second.cpu_share, second.rss_mb)
    assert figures == (0, 0, 0, 0, 0)
    assert second.latency == HistogramSnapshot()
    assert second.stopping is False
