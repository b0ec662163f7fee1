import logging
from collections.abc import Callable

import pytest

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_core.accounting.interval import Lengths, Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import Claim, Message, Report

Cut = Callable[..., LeaseRecord]
MakeClaim = Callable[..., Claim]
MakeReport = Callable[..., Report]


def fetch_resent(ledger: Ledger, run: str = "r1") -> int:
    """The number of requests that may have been sent again."""
    return ledger.runs.fetch(run).resent_at_most


def test_a_claim_tells_who_has_a_lease(ledger: Ledger, cut: Cut, make_claim: MakeClaim) -> None:
    """A claim opens the window of activity and accounts for nothing."""
    lease = cut()
    assert ledger.leases.apply([make_claim(lease)], 5.0) == [MessageVerdict.CLAIMED]
    assert ledger.leases.fetch_active("r1")[0].worker == "w1"
    record = ledger.runs.fetch("r1")
    assert (record.started_at, record.active_since, record.windows) == (3.0, 3.0, 1)
    assert ledger.check("r1") == Lengths(pending=90, leased=10, accounted=0)


def test_a_report_accounts_what_it_covers_and_gives_the_rest_back(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """Requests that were cut off may have been sent; they are pending again, as are those that were never
    taken.
    """
    lease = cut(20)
    report = make_report(lease, done=10, unfinished=[4, 7])
    assert ledger.leases.apply([report], 5.0) == [MessageVerdict.ACCOUNTED]
    assert ledger.leases.fetch_slices("r1") == [
        Slice(0, 4, SliceState.ACCOUNTED),
        Slice(4, 5, SliceState.PENDING),
        Slice(5, 7, SliceState.ACCOUNTED),
        Slice(7, 8, SliceState.PENDING),
        Slice(8, 10, SliceState.ACCOUNTED),
        Slice(10, 100, SliceState.PENDING),
    ]
    assert ledger.runs.fetch_snapshot("r1").account.outcomes == [8, 0, 0, 0, 0, 0]
    assert fetch_resent(ledger) == 2


def test_a_lease_that_was_not_begun_is_given_back_without_a_trace(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """Nothing was sent, so nothing counts as resent and no window opens."""
    lease = cut()
    assert ledger.leases.apply([make_report(lease, done=lease.start)], 5.0) == [MessageVerdict.ACCOUNTED]
    assert ledger.leases.fetch_slices("r1") == [Slice(0, 100, SliceState.PENDING)]
    record = ledger.runs.fetch("r1")
    assert (record.resent_at_most, record.started_at, record.windows) == (0, None, 0)


@pytest.mark.parametrize("is_claimed", [True, False])
def test_a_doubled_report_counts_once(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport, *, is_claimed: bool
) -> None:
    """It may come twice in one batch, again in the next, or with its claim behind it."""
    lease = cut()
    claim, report = make_claim(lease), make_report(lease)
    first: list[Message] = [claim, claim, report, report] if is_claimed else [report, report]
    verdicts = ledger.leases.apply(first, 5.0)
    assert verdicts.count(MessageVerdict.ACCOUNTED) == 1
    assert ledger.leases.apply([report, claim], 6.0) == [MessageVerdict.REPEATED, MessageVerdict.REPEATED]
    assert ledger.check("r1").accounted == 10
    assert fetch_resent(ledger) == 0


def test_the_first_execution_of_a_lease_counts_and_the_second_is_sent_again(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """However often the second one speaks, and whichever reports first, its requests count as resent once."""
    lease = cut()
    second_claim = make_claim(lease, execution="e2", worker="w2", incarnation="b2")
    second = make_report(lease, execution="e2", worker="w2", incarnation="b2")
    assert ledger.leases.apply([make_claim(lease), second_claim, second_claim], 5.0) == [
        MessageVerdict.CLAIMED,
        MessageVerdict.STRAY,
        MessageVerdict.STRAY,
    ]
    assert fetch_resent(ledger) == 10
    assert ledger.leases.apply([second, make_report(lease), second], 6.0) == [
        MessageVerdict.STRAY,
        MessageVerdict.ACCOUNTED,
        MessageVerdict.STRAY,
    ]
    assert fetch_resent(ledger) == 10
    assert [worker.name for worker in ledger.runs.fetch_snapshot("r1").workers] == ["w1"]


def test_a_second_execution_that_was_never_claimed_adds_what_it_sent(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """Its report says how far it came; one that gave the lease back unbegun adds nothing."""
    lease = cut()
    reports = [
        make_report(lease),
        make_report(lease, done=lease.start, execution="e2"),
        make_report(lease, done=lease.start + 4, unfinished=[1], execution="e3"),
    ]
    assert ledger.leases.apply(reports, 5.0) == [
        MessageVerdict.ACCOUNTED,
        MessageVerdict.STRAY,
        MessageVerdict.STRAY,
    ]
    assert fetch_resent(ledger) == 4


def test_what_comes_after_a_lease_was_taken_back_is_late(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """Its requests counted as resent when it expired, and do not count twice."""
    lease = cut()
    ledger.leases.expire([lease.id], ExpiryReason.NOT_CLAIMED, 4.0)
    verdicts = ledger.leases.apply([make_claim(lease), make_report(lease), make_report(lease)], 5.0)
    assert verdicts == [MessageVerdict.LATE, MessageVerdict.LATE, MessageVerdict.LATE]
    assert ledger.check("r1") == Lengths(pending=100, leased=0, accounted=0)
    assert fetch_resent(ledger) == 10
    assert ledger.runs.fetch("r1").started_at is None


@pytest.mark.parametrize("first_speaks_by", ["claim", "report"])
def test_a_second_execution_of_a_lease_that_was_taken_back_is_sent_again(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport, first_speaks_by: str
) -> None:
    """The expiry allowed for one execution only."""
    lease = cut()
    ledger.leases.expire([lease.id], ExpiryReason.WORKER_LOST, 4.0)
    first: Message = make_claim(lease) if first_speaks_by == "claim" else make_report(lease)
    second = make_report(lease, execution="e2")
    assert ledger.leases.apply([first, second], 5.0) == [MessageVerdict.LATE, MessageVerdict.STRAY]
    assert fetch_resent(ledger) == 20


def test_a_lease_that_the_broker_took_although_it_said_no_is_sent_again(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """The expiry allowed for no execution, so each one that speaks is added once."""
    claimed, reported = cut(), cut()
    ledger.leases.expire([claimed.id, reported.id], ExpiryReason.NOT_SENT, 4.0)
    assert fetch_resent(ledger) == 0
    assert ledger.leases.apply([make_claim(claimed)], 5.0) == [MessageVerdict.LATE]
    assert fetch_resent(ledger) == 10
    messages: list[Message] = [make_report(claimed), make_claim(claimed)]
    assert ledger.leases.apply(messages, 5.0) == [MessageVerdict.LATE, MessageVerdict.REPEATED]
    assert fetch_resent(ledger) == 10
    messages = [make_report(reported, done=reported.start + 6), make_claim(reported)]
    assert ledger.leases.apply(messages, 6.0) == [MessageVerdict.LATE, MessageVerdict.REPEATED]
    assert fetch_resent(ledger) == 16
    assert ledger.leases.apply([make_claim(reported, execution="e2")], 7.0) == [MessageVerdict.STRAY]
    assert fetch_resent(ledger) == 26


def test_a_report_that_cannot_be_true_is_dropped_and_said(
    ledger: Ledger, cut: Cut, make_report: MakeReport, caplog: pytest.LogCaptureFixture
) -> None:
    """Its lease stays active, and the log says why."""
    lease = cut()
    with caplog.at_level(logging.WARNING):
        assert ledger.leases.apply([make_report(lease, bytes_received=-1)], 5.0) == [MessageVerdict.UNTRUE]
    assert f"report on lease {lease.id} that cannot be true: bytes_received is -1" in caplog.text
    assert ledger.check("r1").leased == 10
    assert ledger.leases.fetch_active("r1")[0].worker is None


@pytest.mark.parametrize("field", ["lease", "execution", "worker", "incarnation"])
def test_a_message_whose_names_cannot_be_written_is_of_no_lease(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport, field: str
) -> None:
    """JSON can carry half a surrogate pair, which UTF-8 cannot encode; such a message must not come back for
    ever.
    """
    lease = cut()
    messages: list[Message] = [
        make_claim(lease, **{field: "\ud800"}),
        make_report(lease, **{field: "\udfff"}),
    ]
    assert ledger.leases.apply(messages, 5.0) == [MessageVerdict.UNKNOWN, MessageVerdict.UNKNOWN]
    assert ledger.leases.fetch_active("r1")[0].worker is None


def test_a_message_on_an_unknown_lease_is_dropped(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """Somebody who forges messages does not know the id of any lease."""
    lease = cut()
    messages: list[Message] = [
        make_claim(lease, lease="r1.1.00000000"),
        make_report(lease, lease="r1.1.00000000"),
    ]
    assert ledger.leases.apply(messages, 5.0) == [MessageVerdict.UNKNOWN, MessageVerdict.UNKNOWN]


def test_a_batch_is_taken_in_for_several_runs_at_once(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """Each message changes the run of its lease."""
    first, second = cut(run="r1"), cut(run="r2", requests=10)
    verdicts = ledger.leases.apply([make_report(second), make_report(first)], 5.0)
    assert verdicts == [MessageVerdict.ACCOUNTED] * 2
    assert ledger.runs.fetch("r1").accounted == ledger.runs.fetch("r2").accounted == 10
    assert ledger.runs.fetch("r1").state == RunState.RUNNING
    assert ledger.runs.fetch("r2").state == RunState.COMPLETED


def test_nothing_is_accounted_for_a_run_that_has_failed(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """Workers may still have its leases, but its account and its leases stay as they were."""
    lease = cut()
    ledger.runs.change_state("r1", RunState.FAILED, 4.0, "a reason")
    ledger.leases.apply([make_claim(lease)], 5.0)
    assert ledger.leases.apply([make_report(lease)], 5.0) == [MessageVerdict.LATE]
    assert ledger.leases.expire([lease.id], ExpiryReason.WORKER_LOST, 6.0) == []
    assert ledger.check("r1") == Lengths(pending=90, leased=10, accounted=0)
    record = ledger.runs.fetch("r1")
    assert (record.state, record.reason, record.active_since) == (RunState.FAILED, "a reason", None)


@pytest.mark.parametrize(
    ("worker_time", "begin"), [(3.0, 3.0), (1.0, 2.0), (99.0, 5.0), (float("nan"), 2.0), (-1e300, 2.0)]
)
def test_a_window_opens_when_the_worker_began(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, worker_time: float, begin: float
) -> None:
    """The worker's clock counts within bounds: after the lease was cut at 2 s, and before now at 5 s."""
    ledger.leases.apply([make_claim(cut(), at=worker_time)], 5.0)
    assert ledger.runs.fetch("r1").started_at == begin


def test_a_report_opens_a_window_when_its_claim_was_lost(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """Without it the requests would have taken no time."""
    ledger.leases.apply([make_report(cut(100), started_at=3.5)], 8.0)
    record = ledger.runs.fetch("r1")
    assert (record.started_at, record.windows, record.active_s) == (3.5, 1, 4.5)


def test_a_lease_that_a_worker_refuses_is_for_others(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """All of it is given back, and the run goes on."""
    refused, out = cut(), cut()
    report = make_report(refused, done=refused.start, refusal="ca.pem: no such file")
    assert ledger.leases.apply([report], 5.0) == [MessageVerdict.ACCOUNTED]
    assert ledger.check("r1") == Lengths(pending=90, leased=10, accounted=0)
    assert ledger.runs.fetch("r1").state == RunState.RUNNING
    assert ledger.leases.apply([make_report(out)], 6.0) == [MessageVerdict.ACCOUNTED]


def test_a_run_that_is_being_stopped_is_not_failed_by_a_refusal(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """It deals out no more leases, and may be resumed with other workers."""
    lease = cut()
    ledger.runs.change_state("r1", RunState.PAUSING, 4.0)
    ledger.leases.apply([make_report(lease, done=lease.start, refusal="no such engine")], 5.0)
    assert ledger.runs.fetch("r1").state == RunState.PAUSED
