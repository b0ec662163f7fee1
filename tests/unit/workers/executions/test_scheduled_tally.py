"""What is counted of requests that have due times."""

import asyncio

import pytest
from tests.kit.histograms import make_latency
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.outcome import NOT_SENT, OK, TIMEOUT, UNEXPECTED_STATUS, Outcome, ReasonCount
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution
from oku_workers.executions.scheduled_tally import IN_FLIGHT_CAP, LATE, ScheduledTally


@pytest.fixture
async def tally() -> ScheduledTally:
    """The account of a lease of ten requests."""
    lease = Lease(id="l", run="r", ranges=[(0, 10)], limit=10)
    return ScheduledTally(Execution(lease, Spec(), asyncio.get_running_loop().create_future()))


async def test_an_answer_has_a_latency_a_response_time_and_a_lateness(tally: ScheduledTally) -> None:
    """The response time is the sum of the others."""
    tally.answer(OK, 200, 1000, 7, 300)
    tally.answer(UNEXPECTED_STATUS, 503, 50_000, 0, 20)
    assert tally.outcomes == make_counts(1, unexpected_status=1)
    assert tally.latency.build_snapshot() == make_latency([1000, 50_000])
    assert tally.response_time.build_snapshot() == make_latency([1300, 50_020])
    assert tally.lateness.build_snapshot() == make_latency([300, 20])


async def test_what_was_sent_and_failed_has_a_lateness_alone(tally: ScheduledTally) -> None:
    """Whether it was sent in time is the worker's doing, whatever became of it."""
    tally.fail(TIMEOUT, 3, "no answer", 40)
    assert (tally.lateness.build_snapshot(), tally.response_time.build_snapshot()) == (
        make_latency([40]),
        HistogramSnapshot(),
    )


async def test_what_was_not_sent_has_a_cause_and_no_time(tally: ScheduledTally) -> None:
    """The causes sum to the outcome."""
    tally.skip(LATE, range(2, 3))
    tally.skip(IN_FLIGHT_CAP, range(3, 4))
    tally.skip(IN_FLIGHT_CAP, range(5, 6))
    assert (tally.outcomes, tally.not_sent) == (make_counts(not_sent=3), [2, 1, 0])
    assert tally.lateness.build_snapshot() == HistogramSnapshot()
    assert tally.failures.build_reasons() == [
        ReasonCount(NOT_SENT, "late", 1, 2, 2),
        ReasonCount(NOT_SENT, "in flight cap", 2, 3, 5),
    ]
    assert tally.failures.build_failed() == {Outcome.NOT_SENT: [2, 2, 1, 1]}


async def test_it_takes_less_memory_without_losing_a_time(tally: ScheduledTally) -> None:
    """Few requests are still to come then."""
    tally.answer(OK, 200, 5, 0, 5)
    tally.compact()
    tally.answer(OK, 200, 5, 0, 5)
    assert tally.response_time.build_snapshot() == make_latency([10, 10])


async def test_an_iteration_has_a_response_time_and_a_lateness_as_an_answer_has(
    tally: ScheduledTally,
) -> None:
    """It has no status alone."""
    tally.complete(OK, 1000, 300)
    assert (tally.outcomes, tally.statuses) == (make_counts(1), {})
    assert tally.latency.build_snapshot() == make_latency([1000])
    assert tally.response_time.build_snapshot() == make_latency([1300])
    assert tally.lateness.build_snapshot() == make_latency([300])
