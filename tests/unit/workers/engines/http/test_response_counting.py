"""What complete answers count as."""

import asyncio

import pytest

from oku_core.accounting.outcome import OK, TIMEOUT, UNEXPECTED_STATUS, ReasonCount
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_workers.engines.http.response_counting import Parsed, count_answer
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally

FINE: Parsed = (OK, 200, 5, "")
UNEXPECTED: Parsed = (UNEXPECTED_STATUS, 503, 5, "status 503")
SECOND_NS = 10**9


@pytest.fixture
def tally(loop: asyncio.AbstractEventLoop) -> Tally:
    """Counts requests of a lease, whose first one is number 10 of the run."""
    lease = Lease(id="l", run="r", ranges=[(10, 20)], limit=10)
    return Tally(Execution(lease, Spec(), loop.create_future()))


@pytest.mark.parametrize("parsed", [FINE, UNEXPECTED])
def test_an_answer_counts_with_its_time_and_its_bytes(tally: Tally, parsed: Parsed) -> None:
    """Why it is not ok is told as well."""
    outcome, status, _, reason = parsed
    count_answer(tally, 12, parsed, 7_000_500, 0)
    assert tally.outcomes[outcome] == sum(tally.outcomes) == 1
    assert (tally.statuses, tally.bytes_received) == ({status: 1}, 5)
    assert tally.latency.build_snapshot().sum_us == 7000
    assert tally.failures.build_reasons() == ([ReasonCount(outcome, reason, 1, 2, 2)] if reason else [])


def test_an_answer_that_came_too_late_counts_as_none(tally: Tally) -> None:
    """It has no latency, no status and no bytes."""
    count_answer(tally, 12, (TIMEOUT, 200, 5, "no answer within 2s"), 3 * SECOND_NS, 0)
    assert tally.outcomes[TIMEOUT] == sum(tally.outcomes) == 1
    assert (tally.statuses, tally.bytes_received, tally.latency.build_snapshot().total) == ({}, 0, 0)
    assert tally.failures.build_reasons() == [ReasonCount(TIMEOUT, "no answer within 2s", 1, 2, 2)]


def test_a_fault_of_our_own_ends_the_lease(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for it learns of it."""

    def fail(*_: object) -> None:
        raise ArithmeticError("cannot count")

    monkeypatch.setattr(Tally, "answer", fail)
    with pytest.raises(ArithmeticError):
        count_answer(tally, 12, FINE, 1000, 0)
    assert tally.execution.is_abandoned
