"""What all runs share."""

from dataclasses import dataclass, field

from oku_coordinator.broker.sender import Broker
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.ledger import Ledger
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.flight_records import FlightRecords
from oku_coordinator.workers.liveness import Roster
from oku_core.process.clock import Clock


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Outlives every run; each `ActiveRun` is built on it.

    Args:
        ledger: the truth.
        roster: the workers that live.
        assignment: which workers each run has.
        broker: the way to the workers.
        delivery: sends leases to them.
        file_access: lets them fetch files.
        readiness: knows what runs wait for.
        records: how far dead processes have gone.
        metrics: count.
        signals: begin a round of the main loop.
        clock: Unix time.
        start_within_s: how long a run waits for its workers, unless its spec says so.
    """

    ledger: Ledger
    roster: Roster
    assignment: Assignment
    broker: Broker
    delivery: Delivery
    file_access: FileAccess
    readiness: Readiness
    metrics: Metrics
    signals: LoopSignals
    clock: Clock
    start_within_s: float
    records: FlightRecords = field(default_factory=FlightRecords)
