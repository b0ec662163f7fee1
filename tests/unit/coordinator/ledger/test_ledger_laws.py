"""The laws over the ledger: whatever comes, in whatever order, nothing is lost and nothing counted twice."""

import itertools
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.kit.coordinators.leases import deal_lease

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord, RunRecord, Snapshot
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import SliceState, check_partition
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.outcome import OUTCOMES, Outcome, count_answered
from oku_core.accounting.run_state import FINAL_STATES, TRANSITIONS, RunState
from oku_core.messaging.lease import Claim, Message, Report
from oku_core.spec.spec import Spec

RUNS = ("r1", "r2")
WORKERS = ("w1", "w2", "w3")
ANSWERED = {Outcome.OK, Outcome.UNEXPECTED_STATUS}


@dataclass
class Execution:
    """A worker that carries a lease out: what it will say, and whether the ledger has heard of it."""

    claim: Claim
    report: Report
    is_known: bool = False

    @property
    def sent(self) -> int:
        """The number of requests that it sends."""
        return self.report.done - self.report.start


@dataclass
class ModelLease:
    """A lease as the world outside sees it."""

    record: LeaseRecord
    executions: list[Execution] = field(default_factory=list)
    expired: ExpiryReason | None = None

    def measure_sent(self) -> int:
        """How many requests were sent for it, as far as anybody could know.

        What was given to the broker may be in work before its claim comes, but only once.
        """
        known = [execution.sent for execution in self.executions if execution.is_known]
        if known or self.expired == ExpiryReason.NOT_SENT:
            return sum(known)
        return max((execution.sent for execution in self.executions), default=0)

    def measure_resent_at_worst(self) -> int:
        """More than this has not been sent again."""
        known = [execution for execution in self.executions if execution.is_known]
        cut_off = sum(len(execution.report.unfinished) for execution in known)
        return cut_off + self.record.length * (len(known) + 1 if self.expired else max(0, len(known) - 1))


@st.composite
def executions(draw: st.DrawFn, lease: LeaseRecord, number: int) -> Execution:
    """What a worker may do with a lease: all of it, a prefix, with requests cut off, or nothing."""
    done = draw(st.sampled_from([lease.start, lease.stop]) | st.integers(lease.start, lease.stop))
    taken = range(lease.start, done)
    unfinished = sorted(draw(st.sets(st.sampled_from(taken), max_size=5))) if taken else []
    outcomes = dict.fromkeys(OUTCOMES, 0)
    statuses: Counter[str] = Counter()
    latency = Histogram()
    for _ in range(len(taken) - len(unfinished)):
        outcome = draw(st.sampled_from(OUTCOMES))
        outcomes[outcome] += 1
        if outcome in ANSWERED:
            statuses["200" if outcome == Outcome.OK else "500"] += 1
            latency.record(draw(st.integers(0, 10_000)))
    worker = draw(st.sampled_from(WORKERS))
    names: dict[str, Any] = {
        "lease": lease.id,
        "execution": f"e{number}",
        "worker": worker,
        "incarnation": f"{worker}-incarnation",
    }
    report = Report(
        **names,
        start=lease.start,
        done=done,
        unfinished=unfinished,
        outcomes=list(outcomes.values()),
        statuses=dict(statuses),
        bytes_received=draw(st.integers(0, 1000)),
        latency=latency.build_latency(),
        started_at=draw(st.floats(0, 1000)),
        ended_at=1000.0,
        busy_share=draw(st.sampled_from([0.0, 1.0])),
    )
    return Execution(Claim(**names, at=draw(st.floats(0, 1000))), report)


MEMORY = Path("/dev/shm")
"""Where files are, if there is such a place: what a power cut does is not tried here, and disks are slow."""


class LedgerLaws(RuleBasedStateMachine):
    """Coordinator, broker and workers in every order; the ledger must keep its laws after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.now = 0.0
        self.numbers = itertools.count()
        self.leases: dict[str, ModelLease] = {}
        self.messages: list[tuple[ModelLease, Execution, Message]] = []
        self.counted: dict[str, Counter[int]] = {}
        self.outcomes: dict[str, list[int]] = {}
        self.final: dict[str, RunState] = {}
        self.open()

    def open(self) -> None:
        """Open the file, as a restarted coordinator does."""
        self.ledger = Ledger(Path(self.folder.name) / "ledger.sqlite3")

    def teardown(self) -> None:
        """Close the file."""
        self.ledger.close()
        self.folder.cleanup()

    def tick(self) -> float:
        """Let a second pass."""
        self.now += 1.0
        return self.now

    def state(self, run: str) -> RunState:
        """The state of a run."""
        return self.ledger.runs.fetch(run).state

    # What may happen

    @initialize(requests=st.integers(1, 60))
    def submit_first(self, requests: int) -> None:
        """Submit the first run."""
        self.submit(requests)

    @precondition(lambda self: len(self.counted) < len(RUNS))
    @rule(requests=st.integers(1, 200))
    def submit(self, requests: int) -> None:
        """Submit another run."""
        run = RUNS[len(self.counted)]
        self.ledger.runs.create(run, Spec(requests=requests), self.tick())
        self.counted[run] = Counter()
        self.outcomes[run] = [0] * len(OUTCOMES)

    @rule()
    def give_turn(self) -> None:
        """Let the run begin that has its turn, as the dispatcher does."""
        run = self.ledger.runs.fetch_current()
        if run is not None and run.state == RunState.PENDING:
            self.ledger.runs.change_state(run.run, RunState.RUNNING, self.tick())

    @rule(run=st.sampled_from(RUNS), size=st.integers(1, 50))
    def cut(self, run: str, size: int) -> None:
        """Cut a lease as the dispatcher does, which may act on a state that has changed."""
        if run not in self.counted:
            return
        may_cut = self.state(run) == RunState.RUNNING and self.ledger.leases.count_pending(run) > 0
        lease = deal_lease(self.ledger, run, size, self.tick())
        assert (lease is not None) == may_cut
        if lease is not None:
            assert 1 <= lease.length <= size
            assert lease.id not in self.leases
            self.leases[lease.id] = ModelLease(lease)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def execute(self, data: st.DataObject) -> None:
        """Let a worker take a lease, maybe the second one to do so; its messages are on their way."""
        lease = data.draw(st.sampled_from(list(self.leases.values())))
        execution = data.draw(executions(lease.record, next(self.numbers)))
        lease.executions.append(execution)
        self.messages += [(lease, execution, execution.claim), (lease, execution, execution.report)]

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Deliver messages in a batch: early, late, doubled, in any order; others are lost."""
        batch = data.draw(st.lists(st.sampled_from(self.messages), min_size=1, max_size=4))
        verdicts = self.ledger.leases.apply([message for _, _, message in batch], self.tick())
        assert not {MessageVerdict.UNTRUE, MessageVerdict.UNKNOWN} & set(verdicts)
        for (lease, execution, message), verdict in zip(batch, verdicts, strict=True):
            execution.is_known = True
            if verdict == MessageVerdict.ACCOUNTED:
                assert isinstance(message, Report)
                self.count(lease, message)

    def count(self, lease: ModelLease, report: Report) -> None:
        """Count a report that the ledger says it has accounted."""
        run = lease.record.run
        assert lease.expired is None
        self.counted[run].update(set(range(report.start, report.done)) - set(report.unfinished))
        self.outcomes[run] = [a + b for a, b in zip(self.outcomes[run], report.outcomes, strict=True)]

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def forge(self, data: st.DataObject) -> None:
        """Deliver a message that cannot be true or has no lease; it must change nothing at all."""
        _, execution, _ = data.draw(st.sampled_from(self.messages))
        report = execution.report
        lies: list[dict[str, Any]] = [
            {"lease": f"{report.lease}0"},
            {"lease": "\ud800"},
            {"outcomes": [count + 1 for count in report.outcomes]},
            {"outcomes": [-1, report.covered + 1, 0, 0, 0, 0]},
            {"start": report.start - 1},
            {"done": report.done + 201},
            {"unfinished": [*report.unfinished, report.done]},
            {"statuses": {"200": report.covered + 1}},
            {"bytes_received": -1},
        ]
        lie = msgspec.structs.replace(report, **data.draw(st.sampled_from(lies)))
        before = {run: self.describe(run) for run in self.counted}
        verdicts = self.ledger.leases.apply([lie], self.tick())
        assert set(verdicts) <= {MessageVerdict.UNTRUE, MessageVerdict.UNKNOWN}
        assert {run: self.describe(run) for run in self.counted} == before

    def describe(self, run: str) -> object:
        """Everything that the ledger keeps of a run."""
        snapshot = self.ledger.runs.fetch_snapshot(run)
        account = snapshot.account
        return (
            self.ledger.leases.fetch_slices(run), snapshot.record, self.ledger.runs.fetch_standing(run),
            snapshot.workers, snapshot.flags,
            account.outcomes, account.statuses, account.bytes_received, account.histogram.counts,
        )  # fmt: skip

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), reason=st.sampled_from(ExpiryReason))
    def expire(self, data: st.DataObject, reason: ExpiryReason) -> None:
        """Take leases back as the coordinator does, for whatever reason, rightly or not, also twice."""
        names = data.draw(st.lists(st.sampled_from(list(self.leases)), min_size=1, max_size=3))
        for name in names:
            if self.ledger.leases.expire([name], reason, self.tick()):
                assert self.leases[name].expired is None
                self.leases[name].expired = reason

    @rule(run=st.sampled_from(RUNS), state=st.sampled_from(RunState))
    def change_state(self, run: str, state: RunState) -> None:
        """Pause, resume or cancel a run."""
        wanted = {RunState.PAUSING, RunState.PENDING, RunState.CANCELLING}
        if run not in self.counted or state not in wanted or state not in TRANSITIONS[self.state(run)]:
            return
        self.ledger.runs.change_state(run, state, self.tick())

    @rule(but=st.none() | st.sampled_from(RUNS))
    def park(self, but: str | None) -> None:
        """Kill the whole stack, and prepare for the next one."""
        leases = [lease for run in self.counted for lease in self.ledger.leases.fetch_active(run)]
        self.ledger.runs.park_interrupted(self.tick(), but=but)
        for lease in leases:
            self.leases[lease.id].expired = ExpiryReason.STACK_LOST
        assert all(self.ledger.runs.fetch(run).is_at_rest for run in self.counted if run != but)

    @rule()
    def come_back(self) -> None:
        """Restart the coordinator: everything must be as it was."""
        before = {run: self.describe(run) for run in self.counted}
        self.ledger.close()
        self.open()
        assert {run: self.describe(run) for run in self.counted} == before

    # What must hold

    @invariant()
    def keeps_the_laws(self) -> None:
        """Check the laws for every run after every step."""
        snapshots = [self.ledger.runs.fetch_snapshot(run) for run in self.counted]
        for snapshot in snapshots:
            self.check_conservation(snapshot)
            self.check_account(snapshot)
            self.check_what_was_sent(snapshot)
            self.check_course(snapshot.record)
        active = [s for s in snapshots if not s.record.is_at_rest and s.record.state != RunState.PENDING]
        assert len(active) <= 1

    def check_conservation(self, snapshot: Snapshot) -> None:
        """The ranges are disjoint and together the request space; each index is accounted at most once."""
        run = snapshot.record.run
        slices = self.ledger.leases.fetch_slices(run)
        assert check_partition(slices, snapshot.record.requests) == snapshot.lengths
        assert snapshot.breach is None
        leased = [(piece.start, piece.stop) for piece in slices if piece.state == SliceState.LEASED]
        active = [self.leases[name].record for name in self.ledger.runs.fetch_standing(run).leases]
        assert leased == sorted((lease.start, lease.stop) for lease in active)
        accounted = [piece for piece in slices if piece.state == SliceState.ACCOUNTED]
        indices = {index for piece in accounted for index in range(piece.start, piece.stop)}
        assert self.counted[run] == dict.fromkeys(indices, 1)

    def check_account(self, snapshot: Snapshot) -> None:
        """Outcomes, statuses, latencies and the workers' requests sum to what is accounted."""
        account, counted = snapshot.account, len(self.counted[snapshot.record.run])
        assert account.outcomes == self.outcomes[snapshot.record.run]
        assert sum(account.outcomes) == snapshot.record.accounted == counted
        answered = count_answered(account.outcomes)
        assert sum(account.histogram.counts) == account.histogram.total == answered
        assert sum(account.statuses.values()) == answered
        assert sum(worker.requests for worker in snapshot.workers) == counted

    def check_what_was_sent(self, snapshot: Snapshot) -> None:
        """No more was sent than is accounted, leased or resent, and not too much counts as resent."""
        leases = [lease for lease in self.leases.values() if lease.record.run == snapshot.record.run]
        sent = sum(lease.measure_sent() for lease in leases)
        resent = snapshot.record.resent_at_most
        assert sent <= snapshot.lengths.accounted + resent + snapshot.lengths.leased
        assert resent <= sum(lease.measure_resent_at_worst() for lease in leases)

    def check_course(self, record: RunRecord) -> None:
        """A run that is over stays so; one at rest has no active lease and its clock stands still."""
        assert record.state == self.final.get(record.run, record.state)
        if record.state in FINAL_STATES:
            self.final[record.run] = record.state
        if record.is_at_rest:
            assert not self.ledger.leases.fetch_active(record.run)
            assert record.active_since is None
        assert (record.state == RunState.COMPLETED) == (record.accounted == record.requests)
        assert (record.ended_at is not None) == (record.state in FINAL_STATES)
        assert record.measure_active_s(self.now) <= self.now - record.created_at
        assert (record.windows > 0) == (record.started_at is not None)
        assert not record.accounted or record.windows


TestLedgerLaws = LedgerLaws.TestCase
TestLedgerLaws.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
