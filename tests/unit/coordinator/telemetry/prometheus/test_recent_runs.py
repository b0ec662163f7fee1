import msgspec
import pytest
from tests.kit.coordinators.iterations import USER_CODE, build_inner, build_iterations
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.transactions import change
from tests.kit.coordinators.transactions import read as read_ledger
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import snapshots
from oku_coordinator.ledger.rules.leases.expiring import give_up_run
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import Standing, fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.storage_health import StorageError, StorageFault
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_coordinator.runs.summary.summaries import build_summary
from oku_coordinator.telemetry.prometheus.recent_runs import MOST_NAMES, MOST_RUNS, SHOWN_S, RecentRuns
from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec
from oku_core.summary.tick import Tick


class World:
    """A ledger, and what metrics show of its runs at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.now = 100.0
        self.recent = self.restart()

    def restart(self) -> RecentRuns:
        """What a coordinator shows that has just started on the ledger."""
        self.recent = RecentRuns(self.ledger, lambda: self.now)
        return self.recent

    def begin(self, run: str, spec: Spec | None = None, queued_s: float = 0.0) -> LeaseRecord:
        """Submit a run and let it begin after a wait, all of it leased to one worker."""
        spec = spec or Spec(requests=10)
        change(self.ledger, create_run, run, spec, self.now)
        change(self.ledger, change_state, run, RunState.RUNNING, self.now + queued_s)
        self.now += queued_s
        return deal_lease(self.ledger, run, 10, self.now)

    def complete(self, run: str, spec: Spec | None = None, **changes: object) -> None:
        """Let a run begin, and end at once."""
        lease = self.begin(run, spec)
        apply_batches(self.ledger, [build_batch(lease, build_checkpoint(lease, **changes))], self.now)  # type: ignore[arg-type]

    def list_runs(self) -> list[str]:
        """The runs that are shown."""
        return [figures.run for figures in self.recent.read_runs()]


@pytest.fixture
def world(ledger: Ledger) -> World:
    """Nothing has happened yet."""
    return World(ledger)


def make_tick(run: str, accounted: int = 4, done: int = 7) -> Tick:
    """A second of a run; what is done and not accounted is under way."""
    sample = Sample(
        at=0.0, seconds=1.0, requests_total=10, accounted=accounted, leased=10 - accounted, pending=0,
        done=done, resent_at_most=0, workers=1, in_flight=3, rate_rps=12.0, requests_planned=15,
        outcomes_so_far=make_counts(done),
    )  # fmt: skip
    return Tick(run=run, state=RunState.RUNNING, sample=sample)


def test_an_active_run_is_shown_as_of_its_last_tick(world: World) -> None:
    """With what is under way, which no ledger knows; before its first tick as the ledger has it."""
    world.begin("r1", queued_s=2.5)
    (first,) = world.recent.read_runs()
    assert (first.requests, first.in_flight, first.queued_s) == ((0, 10, 0, 0), 0.0, 2.5)
    world.recent.record_tick(make_tick("r1"))
    (live,) = world.recent.read_runs()
    assert (list(live.requests), list(live.outcomes)) == ([4, 6, 0, 0], make_counts(7))
    assert (live.rate_rps, live.planned_rps, live.in_flight, live.queued_s) == (12.0, 15.0, 3, 2.5)


def test_the_last_figures_of_a_run_are_those_of_its_summary(world: World) -> None:
    """To the last request, whatever its last tick had under way, also after a restart of the coordinator."""
    lease = world.begin("r1", queued_s=2.5)
    world.recent.record_tick(make_tick("r1", accounted=4, done=12))
    apply_batches(world.ledger, [build_batch(lease, build_checkpoint(lease))], world.now)
    for recent in (world.recent, world.restart()):
        (figures,) = recent.read_runs()
        summary = build_summary(read_ledger(world.ledger, fetch_snapshot, "r1"), world.now + 50.0)
        assert summary.state == RunState.COMPLETED
        assert list(figures.requests) == [summary.accounted, 0, 0, summary.resent_at_most]
        assert list(figures.outcomes) == list(make_counts(summary.outcomes.ok)) == make_counts(10)
        assert (figures.rate_rps, figures.planned_rps, figures.in_flight) == (0, 0, 0)
        assert figures.queued_s == summary.queued_s == 2.5
        assert [named.counts.outcomes[0] for named in recent.read_targets()] == [summary.outcomes.ok]


def test_a_run_is_shown_for_five_minutes_after_its_end(world: World) -> None:
    """A pending one is not shown at all."""
    change(world.ledger, create_run, "r1", Spec(requests=10), world.now)
    assert world.list_runs() == []
    world.complete("r2")
    world.now += SHOWN_S
    assert world.list_runs() == ["r2"]
    world.now += 0.1
    assert (world.list_runs(), world.recent.read_targets()) == ([], [])


def test_at_most_twenty_runs_are_shown_the_active_ones_and_the_newest(world: World) -> None:
    """Those that ended last are the newest."""
    for number in range(MOST_RUNS + 5):
        world.complete(f"r{number:02}")
        world.now += 1.0
    world.begin("active")
    assert world.list_runs() == ["active", *(f"r{number:02}" for number in range(24, 5, -1))]
    world.restart()
    assert len(world.list_runs()) == MOST_RUNS


def test_a_run_that_is_deleted_or_unknown_to_the_ledger_is_not_shown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scrape on a disk that cannot be read has the other metrics all the same."""
    world.complete("r1")
    assert world.list_runs() == ["r1"]
    change(world.ledger, begin_deletion, "r1")
    assert world.list_runs() == []

    def fail(*_: object) -> None:
        raise StorageError(StorageFault.IO_ERROR, "said")

    monkeypatch.setattr(run_table, "fetch_recent", fail)
    assert (world.recent.read_runs(), world.recent.read_targets(), world.recent.read_inner()) == ([], [], [])


def test_a_run_whose_account_cannot_be_read_hides_no_other(world: World) -> None:
    """Its failure is reported elsewhere."""
    world.complete("r1")
    world.complete("r2")
    change(
        world.ledger,
        lambda transaction: transaction.execute("UPDATE accounts SET outcomes = '[]' WHERE run = 'r1'"),
    )
    assert [named.run for named in world.recent.read_targets()] == ["r2"]


def test_the_figures_of_a_run_at_rest_are_read_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless its row changes, as that of a paused run whose last checkpoint comes late."""
    reads: list[str] = []
    fetch = snapshots.fetch_standing

    def count(transaction: Transaction, run: str) -> Standing:
        reads.append(run)
        return fetch(transaction, run)

    monkeypatch.setattr(snapshots, "fetch_standing", count)
    world.complete("r1")
    world.begin("r2")
    for _ in range(3):
        world.list_runs()
    assert sorted(reads) == ["r1", "r2", "r2", "r2"]
    change(
        world.ledger,
        lambda transaction: transaction.execute("UPDATE runs SET resent_at_most = 7 WHERE run = 'r1'"),
    )
    assert [figures.requests[3] for figures in world.recent.read_runs()] == [0, 7]


def test_older_runs_have_no_targets_if_there_are_too_many_names(world: World) -> None:
    """The newest run has all of its own."""
    urls = [{"name": f"t{number}", "url": f"/{number}"} for number in range(MOST_NAMES // 3 + 1)]
    spec = parse_spec(Source(None, {"requests": 10, "base-url": "http://shop.test", "targets": urls}))
    for run in ("r1", "r2", "r3"):
        world.begin(run, spec)
        change(world.ledger, give_up_run, run, RunState.FAILED, world.now, "a reason")
        world.now += 1.0
    shown = [named.run for named in world.recent.read_targets()]
    assert (set(shown), len(shown)) == ({"r3", "r2"}, 2 * len(urls))
    assert len(world.list_runs()) == 3


def test_inner_requests_of_several_runs_are_shown(world: World) -> None:
    """Of those that made any."""
    spec = msgspec.structs.replace(USER_CODE, requests=10)
    for run in ("r1", "r2"):
        inner = [build_inner("login", [1001] * 7)]
        world.complete(run, spec, inner=inner, parts=[build_iterations(10)])
        world.now += 1.0
    world.complete("r3")
    assert [(named.run, named.name, named.counts.outcomes[0]) for named in world.recent.read_inner()] == [
        ("r2", "login", 7), ("r1", "login", 7),
    ]  # fmt: skip
