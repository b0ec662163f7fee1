"""The runs that have their turn, as a coordinator has them, with a twin of the broker."""

from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.broker_twin import BrokerTwin

from oku_coordinator.active_run import ActiveRuns, Installation
from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.ledger import Ledger
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.signing import Signer
from oku_core.process.clock import Clock


def build_file_access() -> FileAccess:
    """Build what workers need to fetch files, with tickets of one time."""
    return FileAccess(Signer(MESSAGE_KEY), lambda: 0.0)


def build_delivery(ledger: Ledger, broker: BrokerTwin, roster: Roster, *server_urls: str) -> Delivery:
    """Build a delivery of leases, against these delay servers."""
    return Delivery(broker, roster, ledger, server_urls, build_file_access())


def build_active_runs(
    ledger: Ledger, broker: BrokerTwin, roster: Roster, clock: Clock = lambda: 0.0
) -> ActiveRuns:
    """Build active runs against one delay server; each begins as soon as its workers are there."""
    assignment = Assignment(ledger=ledger, roster=roster)
    return ActiveRuns(
        Installation(
            ledger=ledger,
            roster=roster,
            assignment=assignment,
            broker=broker,
            delivery=build_delivery(ledger, broker, roster, "http://127.0.0.1:1"),
            file_access=build_file_access(),
            readiness=Readiness(ledger, roster, assignment),
            metrics=Metrics(),
            signals=LoopSignals(),
            clock=clock,
            start_within_s=60.0,
        )
    )
