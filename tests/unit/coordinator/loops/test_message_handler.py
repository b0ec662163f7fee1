import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_active_runs
from tests.kit.coordinators.leases import Deal, build_batch, build_checkpoint, expire
from tests.kit.coordinators.transactions import read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases import intake
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.loops.message_handler import CheckpointReceiver, build_controls
from oku_coordinator.runs.printed_lines import PrintedLines
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.lease_state import ExpiryReason, MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch
from oku_core.messaging.order import Control


@pytest.fixture
def broker() -> BrokerTwin:
    """Remembers the answers."""
    return BrokerTwin()


@pytest.fixture
def receiver(ledger: Ledger, broker: BrokerTwin) -> CheckpointReceiver:
    """A receiver whose clock stands at 5 s."""
    return CheckpointReceiver(
        ledger=ledger,
        broker=broker,
        active_runs=build_active_runs(ledger, broker, Roster(10.0)),
        metrics=Metrics(),
        printed=PrintedLines(),
        clock=lambda: 5.0,
    )


def test_what_is_accounted_is_confirmed_with_new_limits(
    receiver: CheckpointReceiver, ledger: Ledger, broker: BrokerTwin, deal: Deal
) -> None:
    """The limits are in the ledger before the worker hears of them."""
    lease = deal(90, limit=10)
    batch = build_batch(lease, build_checkpoint(lease, 10, is_final=False), taken=10, rate_rps=0.0)
    [receipt] = receiver.receive([batch])
    assert receipt.verdicts == [MessageVerdict.ACCOUNTED]
    assert broker.controls == [Control(incarnation="b1", confirmed={lease.id: 1}, limits={lease.id: 90})]
    assert read(ledger, fetch_open_leases, "r1")[0].limit == 90
    assert b'oku_messages_total{verdict="accounted"} 1.0' in receiver.metrics.expose()[0]


def test_a_final_checkpoint_that_means_nothing_is_confirmed(
    receiver: CheckpointReceiver, ledger: Ledger, broker: BrokerTwin, deal: Deal
) -> None:
    """Otherwise its worker would repeat it for ever."""
    lease = deal()
    expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 3.0)
    receiver.receive([build_batch(lease, build_checkpoint(lease))])
    assert broker.controls == [Control(incarnation="b1", confirmed={lease.id: 1})]


def test_a_lease_that_goes_on_without_meaning_anything_is_ended(
    receiver: CheckpointReceiver, ledger: Ledger, broker: BrokerTwin, deal: Deal
) -> None:
    """Others have its requests by now."""
    lease = deal()
    expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 3.0)
    receiver.receive([build_batch(lease, build_checkpoint(lease, 5, is_final=False))])
    assert broker.controls == [Control(incarnation="b1", ends={lease.id: 0})]


def test_checkpoints_that_cannot_be_true_are_answered_as_well(
    receiver: CheckpointReceiver, broker: BrokerTwin, deal: Deal
) -> None:
    """A worker that errs must not go on for ever: its final word is confirmed, and other leases end."""
    ended, other = deal(), deal()
    checkpoints = [build_checkpoint(ended, parts=[]), build_checkpoint(other, parts=[], is_final=False)]
    [receipt] = receiver.receive([build_batch(ended, *checkpoints)])
    assert receipt.verdicts == [MessageVerdict.UNTRUE] * 2
    [control] = broker.controls
    assert (control.confirmed, control.ends) == ({ended.id: 1}, {other.id: 0})


def test_a_name_that_no_message_can_carry_is_not_answered(
    receiver: CheckpointReceiver, broker: BrokerTwin
) -> None:
    """JSON can carry half a surrogate pair, which UTF-8 cannot encode."""
    checkpoint = Checkpoint(lease="\ud800", sequence=4, done=0, end=0)
    batch = CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[checkpoint])
    [receipt] = receiver.receive([batch])
    assert (receipt.verdicts, broker.controls) == ([MessageVerdict.UNKNOWN], [])


def test_where_there_is_nothing_to_say_nothing_is_sent(receiver: CheckpointReceiver) -> None:
    """A batch may be empty."""
    assert (
        build_controls(
            [Receipt(batch=CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[]))],
            receiver.active_runs,
        )
        == []
    )


def test_the_checkpoints_of_other_runs_are_taken_when_one_does_not_balance(
    receiver: CheckpointReceiver, ledger: Ledger, deal: Deal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger lets the run fail; the second attempt is without it."""
    lease, take_in, tries = deal(), intake.fold_batches, []

    def fail_once(*arguments: object) -> list[Receipt]:
        tries.append(arguments)
        if len(tries) == 1:
            raise BreachError("r1", "10 are not 11")
        return take_in(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(intake, "fold_batches", fail_once)
    [receipt] = receiver.receive([build_batch(lease, build_checkpoint(lease))])
    assert receipt.verdicts == [MessageVerdict.LATE]


def test_a_lease_that_cannot_be_read_fails_its_run_and_holds_nobody_up(
    receiver: CheckpointReceiver, ledger: Ledger, path: Path, deal: Deal
) -> None:
    """It would be asked for again and again; its worker may forget it, and the others get their turn."""
    broken, other = deal(run="r1"), deal(run="r2")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE leases SET in_flight = 'nonsense' WHERE id = ?", [broken.id])
    batches = [build_batch(lease, build_checkpoint(lease)) for lease in (broken, other)]
    receipts = receiver.receive(batches)
    assert [receipt.verdicts for receipt in receipts] == [[MessageVerdict.UNKNOWN], [MessageVerdict.CLOSED]]
    assert read(ledger, fetch_run, "r1").state == RunState.FAILED
