"""A dispatcher as a coordinator has it, with a twin of the broker."""

from collections.abc import Callable

from tests.kit.coordinators.broker_twin import BrokerTwin

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.dispatcher import Dispatcher
from oku_coordinator.leasing.expiry import ExpiryRule
from oku_coordinator.leasing.hook_gate import HookGate
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.range_dealer import RangeDealer
from oku_coordinator.leasing.run_clock import RunClock
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.leasing.time_limit import TimeLimit
from oku_coordinator.leasing.waves.wave_dealer import WaveDealer
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster


def build_dispatcher(
    ledger: Ledger,
    broker: BrokerTwin,
    roster: Roster,
    begin: Callable[..., RunRecord | None],
    count_missing: Callable[[RunRecord], int] = lambda _: 0,
    assignment: Assignment | None = None,
) -> Dispatcher:
    """Build a dispatcher of runs against one delay server, which by default wait for one worker at most."""
    delivery = Delivery(broker, roster, ledger, ["http://127.0.0.1:1"])
    expiry, assignment = ExpiryRule(roster), assignment or Assignment(ledger=ledger, roster=roster)
    clock = RunClock(ledger=ledger, count_missing=count_missing)
    ranges = RangeDealer(
        ledger=ledger,
        assignment=assignment,
        delivery=delivery,
        pace=Pace(),
        expiry=expiry,
        time_limit=TimeLimit(ledger=ledger, delivery=delivery, clock=clock),
        shares=Shares(),
    )
    waves = WaveDealer(ledger=ledger, assignment=assignment, delivery=delivery, expiry=expiry, clock=clock)
    hooks = HookGate(ledger=ledger, roster=roster, assignment=assignment, broker=broker)
    return Dispatcher(
        ledger=ledger,
        assignment=assignment,
        delivery=delivery,
        ranges=ranges,
        waves=waves,
        hooks=hooks,
        begin=begin,
    )
