import pytest
from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import drop_accounted_waves
from oku_coordinator.ledger.rules.leases import waves as waves_rules
from oku_coordinator.ledger.rules.leases.unsent import account_not_dealt
from oku_coordinator.ledger.rules.leases.waves import fetch_dealing, start_clock
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing, PieceOrder
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.ledger.tables.schedule_table import fetch_periods, fetch_waves
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.run_state import RunState
from oku_core.schedule.wave import Wave
from oku_core.spec.parser import Source, parse_spec

FIRST = Wave(0, 20, 2, 0, (10, 20))
SECOND = Wave(20, 20, 2, 2, (10, 20))


@pytest.fixture
def run(ledger: Ledger) -> str:
    """A run of ten requests a second for ten seconds."""
    spec = parse_spec(Source(None, {"url": "http://h/", "rate": "10/s", "duration": "10s"}))
    change(ledger, create_run, "r1", spec, 0.0)
    change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    return "r1"


def build_order(wave: Wave, lane: int, *ranges: Range) -> PieceOrder:
    """A piece for worker w1."""
    return PieceOrder("w1", "b1", wave.begin, lane, ranges)


def deal(ledger: Ledger, *orders: PieceOrder, dropped: tuple[int, ...] = ()) -> list[str]:
    """Cut the two waves unless they are there, and deal pieces; gives the ids of the leases."""

    def decide(dealing: Dealing) -> Deal:
        waves = () if dealing.waves and not dropped else (FIRST, SECOND)
        return Deal(dropped=dropped, waves=waves, next_block=4, orders=orders)

    return [lease.id for lease in change(ledger, waves_rules.deal, "r1", decide, 2.0)]


def test_waves_and_their_leases_are_one_transaction(ledger: Ledger, run: str) -> None:
    """Each lease knows its wave and its lane, and its worker may take all of it."""
    assert read(ledger, fetch_dealing, run) == Dealing(waves=[], cut=0, next_block=0, pending=[])
    deal(ledger, build_order(FIRST, 0, (0, 10)), build_order(FIRST, 1, (10, 14), (16, 20)))
    dealing = read(ledger, fetch_dealing, run)
    assert dealing == Dealing(waves=[FIRST, SECOND], cut=2, next_block=4, pending=[(14, 16), (20, 40)])
    leases = read(ledger, fetch_open_leases, run)
    assert [(lease.wave, lease.lane, lease.ranges.ranges, lease.limit) for lease in leases] == [
        (0, 0, ((0, 10),), 10),
        (0, 1, ((10, 14), (16, 20)), 8),
    ]
    assert check_ledger(ledger, run) == (82, 18, 0, 0)


def test_what_is_not_pending_cannot_be_dealt(ledger: Ledger, run: str) -> None:
    """It would be counted twice."""
    deal(ledger, build_order(FIRST, 0, (0, 10)))
    with pytest.raises(BreachError, match=r"the slice \[9, 11\) is not pending"):
        deal(ledger, build_order(FIRST, 0, (9, 11)))
    assert read(ledger, fetch_run, run).state == RunState.FAILED


def test_a_wave_stays_until_all_of_it_is_accounted(ledger: Ledger, run: str) -> None:
    """Until then its lanes say when the rest is due."""
    deal(ledger)
    change(ledger, account_not_dealt, run, [(0, 19), (20, 40)], 3.0)
    drop_accounted_waves(ledger, run)
    assert read(ledger, fetch_waves, run) == [FIRST]
    change(ledger, account_not_dealt, run, [(19, 20)], 3.0)
    drop_accounted_waves(ledger, run)
    assert read(ledger, fetch_waves, run) == []
    assert read(ledger, fetch_dealing, run).next_block == 4


def test_waves_may_be_cut_anew(ledger: Ledger, run: str) -> None:
    """They keep their numbers."""
    deal(ledger)
    deal(ledger, dropped=(0, 20))
    assert read(ledger, fetch_dealing, run).cut == 4
    assert read(ledger, fetch_waves, run) == [FIRST, SECOND]


def test_nothing_is_dealt_of_a_run_that_does_not_run(ledger: Ledger, run: str) -> None:
    """Nor is it asked what to deal."""
    change(ledger, change_state, run, RunState.PAUSING, 2.0)
    assert deal(ledger, build_order(FIRST, 0, (0, 10))) == []
    assert read(ledger, fetch_waves, run) == []


def test_the_waves_of_a_run_that_is_over_are_forgotten(ledger: Ledger, run: str) -> None:
    """Nobody asks for them any more; its periods are kept."""
    change(ledger, start_clock, run, 2.0, 0.0)
    deal(ledger)
    change(ledger, change_state, run, RunState.CANCELLING, 3.0)
    assert read(ledger, fetch_waves, run) == []
    assert [period.stop_s for period in read(ledger, fetch_periods, run)] == [1.5]
