import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.counting_signals import CountingSignals
from tests.kit.coordinators.leases import Apply, Deal, MakeBatch, apply_batches, deal_lease, expire
from tests.kit.coordinators.readiness import build_readiness
from tests.kit.coordinators.transactions import change, commit_after_next_read, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.hooks import start_attempt
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, fail, start_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot, fetch_standing
from oku_coordinator.ledger.tables.accounts.account_table import is_in_memory
from oku_coordinator.ledger.tables.accounts.work_table import record_servers
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.runs.readiness import QueueFullError, UserCodeRefusedError
from oku_coordinator.runs.runs import Runs, build_run_id
from oku_coordinator.servers.served_count import ServedCounter, ServedTotal
from oku_coordinator.servers.server_watch import UNSEEN
from oku_coordinator.telemetry.tick_maker import TickMaker
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import HookAttempt, HookReport
from oku_core.spec.spec import Engine, Hook, Spec
from oku_core.spec.values.file_reference import CodeFile
from oku_core.spec.values.url import Url
from oku_core.summary.summary import ProcessSummary, Summary
from oku_core.summary.tick import Tick
from oku_core.summary.validity import Flag

if TYPE_CHECKING:
    from collections.abc import Callable

SCENARIO = CodeFile(f"scenario.py@sha256:{'0' * 64}:10:scenario.py")
NOW = 1_769_965_512.0  # 2026-02-01 17:05:12 UTC


class ServedTwin(ServedCounter):
    """A stand-in for delay servers."""

    def __init__(self) -> None:
        self.served: int | None = None
        self.processes: list[ProcessSummary] = []
        self.asked: list[str] = []
        self.on_fetch: Callable[[], object] = lambda: None

    async def fetch(self, run: str) -> ServedTotal | None:
        """What they counted."""
        self.asked.append(run)
        self.on_fetch()
        return None if self.served is None else ServedTotal(self.served, self.processes)


@pytest.fixture
def served() -> ServedTwin:
    """Delay servers that do not answer."""
    return ServedTwin()


@pytest.fixture
def signals() -> CountingSignals:
    """They count how often the coordinator was woken."""
    return CountingSignals()


@pytest.fixture
def runs(ledger: Ledger, served: ServedTwin, signals: CountingSignals) -> Runs:
    """Runs at a time that stands still."""
    readiness = build_readiness(ledger)
    return Runs(ledger, served, signals, BrokerTwin(peak_mb=8.04), readiness, lambda: NOW)


def build_tick(ledger: Ledger, run: str) -> Tick:
    """A second of a run."""
    standing = read(ledger, fetch_standing, run)
    return TickMaker(run).build_tick(standing, workers=1, now=NOW)


def list_flags(summary: Summary) -> set[Flag]:
    """The flags of a summary."""
    return {validity.flag for validity in summary.validity}


def test_the_id_of_a_run_tells_its_time() -> None:
    """Ids sort by time, and two of the same second differ."""
    ids = {build_run_id(NOW) for _ in range(20)}
    assert len(ids) > 1
    assert {run.rpartition("-")[0] for run in ids} == {"260201-170512"}
    assert all(len(run) == 18 for run in ids)
    assert max(ids) < build_run_id(NOW + 1)


def test_a_run_is_submitted(runs: Runs, signals: CountingSignals) -> None:
    """It waits for its turn, and the coordinator is woken."""
    record = runs.submit(Spec(requests=1_000_000, name="soak"))
    assert (record.spec.requests, record.name, record.state) == (1_000_000, "soak", RunState.PENDING)
    assert record.created_at == NOW
    assert [listed.run for listed in runs.fetch_page(10, "")] == [record.run]
    assert signals.wakes == 1


def lead_to(runs: Runs, ledger: Ledger, state: RunState) -> str:
    """Make a run in a state."""
    run = runs.submit(Spec(requests=100)).run
    ways: dict[RunState, list[RunState]] = {
        RunState.PENDING: [],
        RunState.RUNNING: [RunState.RUNNING],
        RunState.PAUSING: [RunState.RUNNING, RunState.PAUSING],
        RunState.PAUSED: [RunState.PAUSED],
        RunState.CANCELLING: [RunState.RUNNING, RunState.CANCELLING],
        RunState.CANCELLED: [RunState.CANCELLED],
    }
    for step in ways[state]:
        change(ledger, change_state, run, step, NOW)
        if step == RunState.RUNNING:
            deal_lease(ledger, run, 10, NOW)  # so that it does not come to rest at once
    assert read(ledger, fetch_run, run).state == state
    return run


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("pause", RunState.PENDING, RunState.PAUSED),
        ("pause", RunState.RUNNING, RunState.PAUSING),
        ("pause", RunState.PAUSING, RunState.PAUSING),
        ("pause", RunState.PAUSED, RunState.PAUSED),
        ("resume", RunState.PENDING, RunState.PENDING),
        ("resume", RunState.RUNNING, RunState.RUNNING),
        ("resume", RunState.PAUSED, RunState.PENDING),
        ("cancel", RunState.PENDING, RunState.CANCELLED),
        ("cancel", RunState.RUNNING, RunState.CANCELLING),
        ("cancel", RunState.PAUSING, RunState.CANCELLING),
        ("cancel", RunState.PAUSED, RunState.CANCELLED),
        ("cancel", RunState.CANCELLING, RunState.CANCELLING),
        ("cancel", RunState.CANCELLED, RunState.CANCELLED),
    ],
)
def test_a_run_is_paused_resumed_and_cancelled_from_where_it_is(
    runs: Runs, ledger: Ledger, action: str, before: RunState, after: RunState
) -> None:
    """To say it twice does no harm."""
    run = lead_to(runs, ledger, before)
    assert getattr(runs, action)(run).state == after
    assert read(ledger, fetch_run, run).state == after


def test_a_run_is_cancelled_although_it_pauses_meanwhile(
    runs: Runs, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, make_batch: MakeBatch
) -> None:
    """Its last checkpoint may be committed between any two transactions."""
    run = lead_to(runs, ledger, RunState.PAUSING)
    (lease,) = read(ledger, fetch_open_leases, run)
    final = make_batch(lease, done=5, end=5)
    commit_after_next_read(monkeypatch, ledger, lambda: apply_batches(ledger, [final], NOW))
    assert runs.cancel(run).state in (RunState.CANCELLING, RunState.CANCELLED)
    apply_batches(ledger, [final], NOW)
    assert read(ledger, fetch_run, run).state == RunState.CANCELLED


@pytest.mark.parametrize(
    ("action", "before", "said"),
    [
        ("pause", RunState.CANCELLING, "is cancelling, it cannot become pausing"),
        ("pause", RunState.CANCELLED, "is cancelled, it cannot become pausing"),
        ("resume", RunState.PAUSING, "is pausing, it cannot become pending"),
        ("resume", RunState.CANCELLED, "is cancelled, it cannot become pending"),
    ],
)
def test_what_cannot_be_is_refused(
    runs: Runs, ledger: Ledger, action: str, before: RunState, said: str
) -> None:
    """The error says why in a sentence."""
    run = lead_to(runs, ledger, before)
    with pytest.raises(TransitionError, match=said):
        getattr(runs, action)(run)
    assert read(ledger, fetch_run, run).state == before


def test_a_run_that_is_torn_down_cannot_be_paused_and_a_cancel_waits_no_more(
    runs: Runs, ledger: Ledger
) -> None:
    """The first cancel ends its requests, the second one the wait for its teardown."""
    change(ledger, create_run, "r1", Spec(requests=10, hooks=(Hook.SETUP, Hook.TEARDOWN)), 0.0)
    change(ledger, start_run, "r1", 1.0)
    change(ledger, start_attempt, "r1", Hook.SETUP, "w1", "b1", 1.0)
    report = HookReport(attempt=HookAttempt("r1", Hook.SETUP, 1))
    batch = CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[], hooks=[report])
    apply_batches(ledger, [batch], now=2.0)
    assert runs.cancel("r1").state == RunState.TEARING_DOWN
    with pytest.raises(
        TransitionError, match="run r1 has ended but for its teardown; cancel it to wait no more"
    ):
        runs.pause("r1")
    assert runs.cancel("r1").state == RunState.CANCELLED
    assert read(ledger, fetch_run, "r1").reason == "teardown was given up: the run was cancelled"


def test_a_change_wakes_the_coordinator(runs: Runs, ledger: Ledger, signals: CountingSignals) -> None:
    """A command that changes nothing does not."""
    run = lead_to(runs, ledger, RunState.RUNNING)
    signals.wakes = 0
    runs.pause(run)
    assert signals.wakes == 1
    runs.pause(run)
    assert signals.wakes == 1


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING])
def test_a_run_that_is_active_can_be_cancelled_at_once(
    runs: Runs, ledger: Ledger, signals: CountingSignals, state: RunState
) -> None:
    """Its requests in flight have no time to finish, and a run that goes on later has its grace again."""
    run = lead_to(runs, ledger, state)
    assert read(ledger, fetch_run, run).drain_s == Spec().drain_s > 0
    signals.wakes = 0
    record = runs.cancel(run, at_once=True)
    assert (record.state, record.drain_s) == (RunState.CANCELLING, 0.0)
    assert read(ledger, fetch_run, run).drain_s == 0.0
    assert signals.wakes
    change(ledger, change_state, run, RunState.FAILED, NOW)
    assert runs.resume(run).drain_s == Spec().drain_s


async def test_a_run_that_can_be_resumed_is_read_into_memory_first(
    ledger: Ledger, runs: Runs, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """One that is refused is not, nor one that waits already: its account would stay there."""
    names = ("paused", "broken", "cancelled", "code", "waiting")
    change(ledger, create_run, "code", Spec(requests=100, engine=Engine.PYTHON, scenario=SCENARIO), 0.0)
    change(ledger, start_run, "code", 1.0)
    for run in names:
        apply([make_batch(deal(50, run))], 5.0)
        change(ledger, change_state, run, RunState.PAUSED, 6.0)
    change(ledger, fail, "broken", "10 are not 11", 7.0)
    change(ledger, change_state, "cancelled", RunState.CANCELLED, 7.0)
    change(ledger, change_state, "waiting", RunState.PENDING, 7.0)
    change(ledger, lambda t: t.accounts.clear())
    refusals = {"broken": TransitionError, "cancelled": TransitionError, "code": UserCodeRefusedError}
    for run, refusal in refusals.items():
        with pytest.raises(refusal):
            await runs.prepare_resume(run)
    await runs.prepare_resume("waiting")
    full = Runs(ledger, ServedTwin(), CountingSignals(), BrokerTwin(), build_readiness(ledger, most_queued=1))
    with pytest.raises(QueueFullError):
        await full.prepare_resume("paused")
    assert [run for run in names if read(ledger, is_in_memory, run)] == []
    await runs.prepare_resume("paused")
    assert [run for run in names if read(ledger, is_in_memory, run)] == ["paused"]
    assert runs.resume("paused").state == RunState.PENDING


async def test_it_is_known_which_runs_are_followed(runs: Runs) -> None:
    """A run is followed as long as anybody follows it."""
    run = runs.submit(Spec(requests=100)).run
    followers = [await begin_to_follow(runs, run) for _ in range(2)]
    assert runs.followers.runs == {run}
    for follower in followers:
        follower.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
    assert runs.followers.runs == set()


async def test_a_summary_has_what_the_servers_count_now(
    runs: Runs, ledger: Ledger, served: ServedTwin, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """While the run is under way, their count is shown, but neither kept nor compared."""
    apply([make_batch(deal())], 5.0)
    served.served = 3
    summary = await runs.summarize("r1")
    assert summary.servers is not None
    assert summary.servers.served == 3
    assert Flag.UNBALANCED not in list_flags(summary)
    assert read(ledger, fetch_run, "r1").served is None
    served.served = None
    assert (await runs.summarize("r1")).servers is None


async def test_what_the_servers_counted_is_kept_with_a_run_at_rest(
    runs: Runs, ledger: Ledger, served: ServedTwin, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """They may be gone when somebody asks again, and a restarted server has counted less."""
    apply([make_batch(deal(100))], 5.0)
    for count, kept in [(None, None), (100, 100), (None, 100), (40, 100), (130, 130)]:
        served.served = count
        summary = await runs.summarize("r1")
        assert (summary.servers.served if summary.servers else None) == kept
        assert read(ledger, fetch_run, "r1").served == kept
    assert Flag.UNBALANCED in list_flags(summary)


async def test_what_the_servers_counted_before_a_run_went_on_is_not_kept(
    runs: Runs, ledger: Ledger, served: ServedTwin, deal: Deal
) -> None:
    """Somebody resumes the run while the servers are asked."""
    lease = deal()
    expire(ledger, [lease.id], ExpiryReason.DROPPED, 3.0)
    change(ledger, change_state, "r1", RunState.PAUSING, 4.0)
    served.served = 10
    served.on_fetch = lambda: runs.resume("r1")
    await runs.summarize("r1")
    assert read(ledger, fetch_run, "r1").state == RunState.PENDING
    assert read(ledger, fetch_run, "r1").served is None


async def test_what_the_servers_counted_before_a_run_came_to_rest_is_not_kept(
    runs: Runs, ledger: Ledger, served: ServedTwin, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The last checkpoint comes while the servers are asked."""
    batch = make_batch(deal(100))
    served.served = 97
    served.on_fetch = lambda: apply([batch], 5.0)
    summary = await runs.summarize("r1")
    assert (summary.state, summary.servers) == (RunState.COMPLETED, None)
    assert read(ledger, fetch_run, "r1").served is None
    assert Flag.UNBALANCED not in list_flags(summary)


async def test_servers_of_others_are_not_asked(runs: Runs, served: ServedTwin) -> None:
    """They count nothing for us."""
    run = runs.submit(Spec(requests=1, urls=(Url("http://example.org/"),))).run
    assert (await runs.summarize(run)).servers is None
    assert served.asked == []


async def collect(runs: Runs, run: str) -> list[Tick | None]:
    """All ticks of a run until it rests, and None for each silence."""
    return [tick async for tick in runs.followers.follow(run)]


async def begin_to_follow(runs: Runs, run: str) -> "asyncio.Task[list[Tick | None]]":
    """Follow a run in a task that has begun to wait."""
    task = asyncio.create_task(collect(runs, run))
    await asyncio.sleep(0)
    return task


async def test_who_follows_a_silent_run_hears_that_it_is_silent(
    runs: Runs, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ticks of other runs do not count; that finds out who has left."""
    monkeypatch.setattr("oku_coordinator.runs.followers.SILENCE_S", 0.02)
    run, other = (runs.submit(Spec(requests=1)).run for _ in range(2))
    following = runs.followers.follow(run)
    asking = asyncio.ensure_future(anext(following))
    while not asking.done():
        runs.followers.publish(build_tick(ledger, other))
        await asyncio.sleep(0)
    assert asking.result() is None
    runs.cancel(run)
    assert [tick async for tick in following] == []


async def test_who_follows_gets_the_ticks_of_that_run_until_it_rests(runs: Runs, ledger: Ledger) -> None:
    """A follower gets no ticks of others, and notices the rest at once."""
    run, other = lead_to(runs, ledger, RunState.RUNNING), runs.submit(Spec(requests=1)).run
    task = await begin_to_follow(runs, run)
    ticks = [build_tick(ledger, run) for _ in range(3)]
    for tick in ticks:
        runs.followers.publish(tick)
        runs.followers.publish(build_tick(ledger, other))
    runs.cancel(other)
    await asyncio.sleep(0)
    assert not task.done()
    expire(ledger, [lease.id for lease in read(ledger, fetch_open_leases, run)], ExpiryReason.DROPPED, NOW)
    runs.pause(run)
    assert await task == ticks


async def test_the_end_of_a_run_is_announced(
    runs: Runs, ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The run comes to rest by a checkpoint in another thread, and the coordinator tells its followers."""
    lease = deal(100)
    task = await begin_to_follow(runs, "r1")
    apply([make_batch(lease)], 5.0)
    await asyncio.sleep(0)
    assert not task.done()
    runs.followers.announce_rest()
    assert await task == []


async def test_who_is_too_slow_misses_the_oldest_ticks(runs: Runs, ledger: Ledger) -> None:
    """What is kept for a follower does not grow, and the end is never missed."""
    run = lead_to(runs, ledger, RunState.RUNNING)
    task = await begin_to_follow(runs, run)
    tick = build_tick(ledger, run)
    for _ in range(1000):
        runs.followers.publish(tick)
    expire(ledger, [lease.id for lease in read(ledger, fetch_open_leases, run)], ExpiryReason.DROPPED, NOW)
    runs.pause(run)
    ticks: Any = await task
    assert 0 < len(ticks) <= 60


async def test_how_large_the_processes_were_is_kept_with_a_run_that_has_ended(
    runs: Runs, ledger: Ledger, served: ServedTwin
) -> None:
    """These are the coordinator, the broker, and the delay servers that say it."""
    run = runs.submit(Spec(requests=10)).run
    runs.cancel(run)
    served.served, served.processes = 0, [ProcessSummary(name="server-1", peak_mb=20.5)]
    await runs.end(run)
    processes = read(ledger, fetch_snapshot, run).processes
    assert [process.name for process in processes] == ["broker", "coordinator", "server-1"]
    assert [process.peak_mb for process in processes[::2]] == [8.0, 20.5]
    assert processes[1].peak_mb > 5


async def test_servers_that_may_come_back_hold_the_end_of_a_run_back(
    runs: Runs, ledger: Ledger, served: ServedTwin, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Nothing is kept until they say what they counted, and followers are not told of the rest before."""
    apply([make_batch(deal(100))], 5.0)
    assert not await runs.end("r1", waits=True)
    assert read(ledger, fetch_snapshot, "r1").processes == []
    following = await begin_to_follow(runs, "r1")
    runs.followers.announce_rest()
    await asyncio.sleep(0)
    assert not following.done()
    served.served = 100
    assert await runs.end("r1", waits=True)
    runs.followers.announce_rest()
    assert await following == []
    assert read(ledger, fetch_run, "r1").served == 100
    assert read(ledger, fetch_snapshot, "r1").processes


async def test_servers_that_are_lost_for_good_are_not_waited_for(
    runs: Runs, ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The servers of a run that has not begun are not waited for either."""
    apply([make_batch(deal(100))], 5.0)
    change(ledger, record_servers, "r1", [UNSEEN], 5.0)
    assert await runs.end("r1", waits=True)
    assert await runs.end(lead_to(runs, ledger, RunState.CANCELLED), waits=True)
