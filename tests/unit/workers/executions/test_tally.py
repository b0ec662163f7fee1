"""What a tally makes of requests that end."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.histogram import HIGHEST_US, Histogram
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import OK, Tally

TIMES_US = st.lists(
    st.integers(0, 5000) | st.integers(0, HIGHEST_US) | st.integers(HIGHEST_US, 2 * HIGHEST_US)
)


def build_execution(length: int) -> Execution:
    """An execution of so many requests, none of which was taken."""
    loop = asyncio.new_event_loop()
    lease = Lease(id="l", run="r", ranges=[(0, length)] if length else [], limit=length)
    execution = Execution(lease, Spec(), loop.create_future())
    loop.close()
    return execution


@given(latencies_us=TIMES_US, compacted_after=st.integers(0, 100), is_dense=st.booleans())
def test_its_latencies_are_those_of_a_histogram(
    latencies_us: list[int], compacted_after: int, *, is_dense: bool
) -> None:
    """What is recorded in place, in a list or in less memory, is exactly what a `Histogram` records."""
    tally, histogram = Tally(build_execution(10**6), is_dense=is_dense), Histogram()
    for place, latency_us in enumerate(latencies_us):
        if place == compacted_after:
            tally.compact()
        tally.answer(OK, 200, latency_us, 0)
        histogram.record(latency_us)
    assert tally.latency.build_snapshot() == histogram.build_latency()
    assert list(tally.latency.list_counts()) == list(histogram.filled())


def test_without_due_times_nothing_is_late() -> None:
    """There is one distribution then."""
    tally = Tally(build_execution(10))
    tally.answer(OK, 200, 10, 0, 5)
    assert (list(tally.response_time.list_counts()), list(tally.lateness.list_counts())) == ([], [])
