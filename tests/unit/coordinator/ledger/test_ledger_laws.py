"""The laws over the ledger: whatever comes, in whatever order, nothing is lost and nothing counted twice."""

import itertools
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.kit.coordinators.leases import build_batch, build_incarnation

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseOrder, LeaseRecord, Receipt, RunRecord, Snapshot
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import SliceState, check_partition
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.outcome import OUTCOMES, Outcome, build_no_counts, count_answered
from oku_core.accounting.run_state import FINAL_STATES, TRANSITIONS, RunState
from oku_core.messaging.checkpoint import Checkpoint, Part
from oku_core.spec.spec import Spec

RUNS = ("r1", "r2")
WORKERS = ("w1", "w2", "w3")
NAMES = ("", "even")
"""Of the requests, by whether their position is even."""
ANSWERED = {Outcome.OK, Outcome.UNEXPECTED_STATUS}
ACCEPTED = {MessageVerdict.ACCOUNTED, MessageVerdict.CLOSED}


class Answer(NamedTuple):
    """How a request ended."""

    outcome: Outcome
    second: int
    latency_us: int


@dataclass
class WorkedLease:
    """A lease as the worker has it that carries it out, and what it has said of it."""

    record: LeaseRecord
    limit: int
    end: int
    taken: int = 0
    answers: dict[int, Answer] = field(default_factory=dict)
    is_over: bool = False
    said: list[Checkpoint] = field(default_factory=list)
    parts: list[dict[str, Part]] = field(default_factory=list)
    """The whole parts behind each checkpoint."""
    confirmed: int = 0
    committed: int = 0
    """The sequence number that the ledger has accepted."""
    accounted: set[int] = field(default_factory=set)
    expired: ExpiryReason | None = None

    @property
    def in_flight(self) -> list[int]:
        """The positions that were taken and have not ended."""
        return [position for position in range(self.taken) if position not in self.answers]

    def build_parts(self) -> dict[str, Part]:
        """What came of each name so far."""
        parts: dict[str, Part] = {}
        for name in NAMES:
            mine = [answer for place, answer in self.answers.items() if NAMES[place % 2 == 0] == name]
            outcomes, statuses, latency = dict.fromkeys(OUTCOMES, 0), Counter[str](), Histogram()
            seconds: dict[int, list[int]] = {}
            for answer in mine:
                outcomes[answer.outcome] += 1
                seconds.setdefault(answer.second, build_no_counts())[OUTCOMES.index(answer.outcome)] += 1
                if answer.outcome in ANSWERED:
                    statuses["200" if answer.outcome == Outcome.OK else "500"] += 1
                    latency.record(answer.latency_us)
            if mine:
                parts[name] = Part(
                    name=name, outcomes=list(outcomes.values()), statuses=dict(statuses),
                    bytes_received=7 * len(mine), latency=latency.build_latency(), per_second=seconds,
                )  # fmt: skip
        return parts

    def say(self, *, leaves_out: bool) -> Checkpoint:
        """Say how it stands; what has not changed since a confirmed checkpoint may be left out."""
        parts = self.build_parts()
        known = self.parts[self.confirmed - 1] if self.confirmed and leaves_out else {}
        checkpoint = Checkpoint(
            lease=self.record.id, sequence=len(self.said) + 1, done=self.taken, end=self.end,
            in_flight=self.in_flight, is_final=self.is_over,
            parts=[
                trim(part, known.get(name)) for name, part in parts.items() if part != known.get(name)
            ],
            started_at=0.5 if self.taken else 0.0, ended_at=1000.0, cpu_s=0.1 * len(self.answers),
            saturated=len(self.answers), busy_share=1.0, watched_s=self.taken / 4,
            underfilled_s=self.taken / 8,
        )  # fmt: skip
        self.said.append(checkpoint)
        self.parts.append(parts)
        return checkpoint


def trim(part: Part, known: Part | None) -> Part:
    """A part without the seconds that are known."""
    if known is None:
        return part
    fresh = {
        second: counts for second, counts in part.per_second.items() if known.per_second.get(second) != counts
    }
    return msgspec.structs.replace(part, per_second=fresh)


def choose(value: int, _: int) -> int:
    """A size or a limit, whatever there is."""
    return value


MEMORY = Path("/dev/shm")
"""Where files are, if there is such a place: what a power cut does is not tried here, and disks are slow."""


class LedgerLaws(RuleBasedStateMachine):
    """Coordinator, broker and workers in every order; the ledger must keep its laws after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.now = 0.0
        self.leases: dict[str, WorkedLease] = {}
        self.limits: dict[str, int] = {}
        self.counted: dict[str, Counter[int]] = {}
        self.resent: dict[str, int] = {}
        self.answers: dict[str, list[Answer]] = {}
        self.final: dict[str, RunState] = {}
        self.open()

    def open(self) -> None:
        """Open the file, as a restarted coordinator does."""
        self.ledger = Ledger(Path(self.folder.name) / "ledger.sqlite3", publishes=True)

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

    def pick(self, data: st.DataObject, *, is_worked: bool = False) -> WorkedLease | None:
        """Some lease; or one on which its worker still works."""
        leases = [lease for lease in self.leases.values() if not (is_worked and lease.is_over)]
        return data.draw(st.sampled_from(leases)) if leases else None

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
        self.counted[run], self.resent[run], self.answers[run] = Counter(), 0, []

    @rule()
    def give_turn(self) -> None:
        """Let the run begin that has its turn, as the dispatcher does."""
        run = self.ledger.runs.fetch_current()
        if run is not None and run.state == RunState.PENDING:
            self.ledger.runs.change_state(run.run, RunState.RUNNING, self.tick())

    @rule(
        run=st.sampled_from(RUNS),
        wanted=st.lists(
            st.tuples(st.sampled_from(WORKERS), st.integers(0, 40), st.integers(0, 40)),
            min_size=1,
            max_size=4,
        ),
    )
    def deal(self, run: str, wanted: list[tuple[str, int, int]]) -> None:
        """Deal leases as the dispatcher does, which may act on a state that has changed."""
        if run not in self.counted:
            return
        pending = self.ledger.leases.count_pending(run) if self.state(run) == RunState.RUNNING else 0
        orders = [
            LeaseOrder(worker, build_incarnation(worker), partial(choose, size), partial(choose, limit))
            for worker, size, limit in wanted
        ]
        leases = self.ledger.leases.deal(run, orders, self.tick())
        assert sum(lease.length for lease in leases) == min(pending, sum(size for _, size, _ in wanted))
        for lease in leases:
            assert lease.id not in self.leases
            self.leases[lease.id] = WorkedLease(lease, limit=lease.limit, end=lease.end)

    @rule(data=st.data(), take=st.integers(0, 20), answers=st.integers(0, 20))
    def work(self, data: st.DataObject, take: int, answers: int) -> None:
        """Let a worker take requests, as far as it may, and let some of those in flight end."""
        lease = self.pick(data, is_worked=True)
        if lease is None:
            return
        lease.taken = max(lease.taken, min(lease.taken + take, lease.limit, lease.end))
        in_flight = lease.in_flight
        for position in data.draw(st.permutations(in_flight))[:answers] if in_flight else []:
            lease.answers[position] = Answer(
                data.draw(st.sampled_from(OUTCOMES)), data.draw(st.integers(0, 5)),
                data.draw(st.integers(0, 10_000)),
            )  # fmt: skip

    @rule(data=st.data(), share=st.floats(0, 1))
    def shorten(self, data: st.DataObject, share: float) -> None:
        """Let a worker end a lease earlier, but not before what it has taken."""
        if lease := self.pick(data, is_worked=True):
            lease.end = max(lease.taken, int(lease.end * share))

    @rule(data=st.data(), leaves_out=st.booleans(), is_over=st.booleans())
    def say(self, data: st.DataObject, *, leaves_out: bool, is_over: bool) -> None:
        """Let a worker say how a lease stands, maybe for the last time, with requests given back."""
        if lease := self.pick(data, is_worked=True):
            lease.is_over = is_over
            lease.say(leaves_out=leaves_out)

    @rule(data=st.data(), allowance=st.integers(0, 60), is_heard=st.booleans())
    def deliver(self, data: st.DataObject, allowance: int, *, is_heard: bool) -> None:
        """Deliver checkpoints in a batch: early, late, doubled, in any order; others are lost."""
        said = [(lease, checkpoint) for lease in self.leases.values() for checkpoint in lease.said]
        if not said:
            return
        drawn = data.draw(st.lists(st.sampled_from(said), min_size=1, max_size=4))
        batches = [build_batch(lease.record, checkpoint) for lease, checkpoint in drawn]
        receipts = self.ledger.leases.apply(batches, lambda _batch, _spec: allowance, self.tick())
        for (lease, checkpoint), receipt in zip(drawn, receipts, strict=True):
            assert receipt.verdicts == [self.judge(lease, checkpoint)]
            if receipt.verdicts[0] in ACCEPTED:
                self.count(lease, checkpoint)
            if is_heard:
                self.hear(receipt)

    def judge(self, lease: WorkedLease, checkpoint: Checkpoint) -> MessageVerdict:
        """What the ledger should make of a checkpoint."""
        if lease.expired is not None:
            return MessageVerdict.LATE
        if checkpoint.sequence <= lease.committed or self.is_closed(lease):
            return MessageVerdict.REPEATED
        return MessageVerdict.CLOSED if checkpoint.is_final else MessageVerdict.ACCOUNTED

    def is_closed(self, lease: WorkedLease) -> bool:
        """Whether the ledger has the last word of a worker."""
        return lease.committed > 0 and lease.said[lease.committed - 1].is_final

    def count(self, lease: WorkedLease, checkpoint: Checkpoint) -> None:
        """Count a checkpoint that the ledger has accepted."""
        run, ranges = lease.record.run, lease.record.ranges
        covered = set(range(checkpoint.done)) - set(checkpoint.in_flight)
        assert lease.accounted <= covered
        fresh = sorted(covered - lease.accounted)
        self.counted[run].update(ranges.list_indices(fresh))
        self.answers[run] += [lease.answers[position] for position in fresh]
        lease.accounted, lease.committed = covered, checkpoint.sequence
        if checkpoint.is_final:
            self.resent[run] += len(checkpoint.in_flight)

    def hear(self, receipt: Receipt) -> None:
        """Let the worker hear what the ledger has decided."""
        for name, sequence in receipt.confirmed.items():
            lease = self.leases[name]
            assert sequence <= len(lease.said)
            lease.confirmed = max(lease.confirmed, min(sequence, lease.committed))
        for name, limit in receipt.limits.items():
            self.leases[name].limit = max(self.leases[name].limit, limit)
        for name, end in receipt.ends.items():
            lease = self.leases[name]
            lease.end = max(lease.taken, min(lease.end, end))

    @rule(data=st.data())
    def forge(self, data: st.DataObject) -> None:
        """Deliver a checkpoint that cannot be true or is of no lease; it must change nothing at all."""
        open_leases = [lease for lease in self.leases.values() if lease.said and lease.expired is None]
        open_leases = [lease for lease in open_leases if not self.is_closed(lease)]
        if not open_leases:
            return
        lease = data.draw(st.sampled_from(open_leases))
        truth = msgspec.structs.replace(lease.say(leaves_out=False), sequence=len(lease.said) + 10)
        lease.said.pop()
        lease.parts.pop()
        record = next(r for r in self.ledger.leases.fetch_open(lease.record.run) if r.id == lease.record.id)
        lies: list[dict[str, Any]] = [
            {"lease": f"{truth.lease}0"},
            {"lease": "\ud800"},
            {"sequence": 0, "done": truth.done + 1},
            {"done": record.bound + 1, "end": truth.end + 1},
            {"end": truth.done - 1},
            {"in_flight": [*truth.in_flight, truth.done]},
            {"parts": [*truth.parts, Part(name="forged", outcomes=[0, 0, 1, 0, 0, 0])]},
            {"parts": [Part(name="\n"), *truth.parts]},
            {"saturated": truth.covered + 1},
        ]  # fmt: skip
        if lease.accounted:
            lies.append({"in_flight": sorted({*truth.in_flight, min(lease.accounted)})})
            lies.append({"done": 0, "in_flight": [], "parts": []})
        lie = msgspec.structs.replace(truth, **data.draw(st.sampled_from(lies)))
        before = {run: self.describe(run) for run in self.counted}
        batch = build_batch(lease.record, lie, **data.draw(st.sampled_from([{}, {"incarnation": "b9"}])))
        receipts = self.ledger.leases.apply([batch], lambda _batch, _spec: 0, self.tick())
        silent = {MessageVerdict.UNTRUE, MessageVerdict.UNKNOWN, MessageVerdict.FOREIGN}
        silent.add(MessageVerdict.REPEATED if lie.sequence == 0 else MessageVerdict.UNTRUE)
        assert set(receipts[0].verdicts) <= silent
        assert {run: self.describe(run) for run in self.counted} == before

    def describe(self, run: str) -> object:
        """Everything that the ledger keeps of a run."""
        snapshot = self.ledger.runs.fetch_snapshot(run)
        account = snapshot.account
        return (
            self.ledger.leases.fetch_slices(run), snapshot.record, self.ledger.runs.fetch_standing(run),
            self.ledger.leases.fetch_open(run), self.ledger.leases.fetch_open_by_incarnation(run),
            snapshot.workers, snapshot.flags,
            account.outcomes, account.statuses, account.bytes_received, account.histogram.counts,
        )  # fmt: skip

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), reason=st.sampled_from(ExpiryReason))
    def take_back(self, data: st.DataObject, reason: ExpiryReason) -> None:
        """Take leases back as the coordinator does, for whatever reason, rightly or not, also twice.

        A lease that is taken back because it was not sent is one that no worker has begun.
        """
        names = data.draw(st.lists(st.sampled_from(list(self.leases)), min_size=1, max_size=3))
        if reason == ExpiryReason.NOT_SENT:
            names = [name for name in names if not self.leases[name].taken]
        records = self.fetch_open()
        for name in self.ledger.leases.take_back(names, reason, self.tick()):
            lease, record = self.leases[name], records[name]
            assert lease.expired is None
            lease.expired = reason
            lease.is_over |= reason == ExpiryReason.NOT_SENT
            self.resent[record.run] += 0 if reason == ExpiryReason.NOT_SENT else record.at_risk

    def fetch_open(self) -> dict[str, LeaseRecord]:
        """The open leases of all runs."""
        return {lease.id: lease for run in self.counted for lease in self.ledger.leases.fetch_open(run)}

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def cut_at_limits(self, data: st.DataObject) -> None:
        """End leases of suspect workers at their limits."""
        names = data.draw(st.lists(st.sampled_from(list(self.leases)), min_size=1, max_size=3))
        for lease in self.ledger.leases.cut_at_limits(names, self.tick()):
            assert lease.end == lease.bound

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
        records = self.fetch_open()
        self.ledger.runs.park_interrupted(self.tick(), but=but)
        for name, record in records.items():
            self.leases[name].expired = ExpiryReason.STACK_LOST
            self.resent[record.run] += record.at_risk
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
        self.check_limits()
        active = [s for s in snapshots if not s.record.is_at_rest and s.record.state != RunState.PENDING]
        assert len(active) <= 1

    def check_conservation(self, snapshot: Snapshot) -> None:
        """The ranges are disjoint and together the request space; each index is accounted at most once."""
        run = snapshot.record.run
        assert snapshot.breach is None
        slices = self.ledger.leases.fetch_slices(run)
        check_partition(slices, snapshot.record.requests)
        held = self.ledger.leases.fetch_open(run)
        leased = [(piece.start, piece.stop) for piece in slices if piece.state == SliceState.LEASED]
        assert leased == sorted(piece for lease in held for piece in lease.ranges.cut(0, lease.end))
        assert self.ledger.runs.fetch_standing(run).leases == {lease.id: lease.outcomes for lease in held}
        accounted = [
            range(piece.start, piece.stop) for piece in slices if piece.state == SliceState.ACCOUNTED
        ]
        indices = set(itertools.chain.from_iterable(accounted))
        for lease in held:
            indices.update(lease.ranges.list_indices(self.leases[lease.id].accounted))
        assert self.counted[run] == dict.fromkeys(indices, 1)
        assert snapshot.lengths.accounted == len(indices)

    def check_account(self, snapshot: Snapshot) -> None:
        """Outcomes, statuses, latencies and the workers' requests are those of what is accounted."""
        account, answers = snapshot.account, self.answers[snapshot.record.run]
        assert account.outcomes == [sum(a.outcome == outcome for a in answers) for outcome in OUTCOMES]
        assert sum(account.outcomes) == snapshot.record.accounted
        answered = count_answered(account.outcomes)
        assert sum(account.histogram.counts) == account.histogram.total == answered
        assert account.histogram.sum_us == sum(a.latency_us for a in answers if a.outcome in ANSWERED)
        assert sum(account.statuses.values()) == answered
        assert account.bytes_received == 7 * len(answers)
        assert sum(worker.requests for worker in snapshot.workers) == len(answers)

    def check_what_was_sent(self, snapshot: Snapshot) -> None:
        """No more was sent than is accounted, at risk or resent, and no more counts as resent than must."""
        run = snapshot.record.run
        sent = sum(lease.taken for lease in self.leases.values() if lease.record.run == run)
        at_risk = sum(lease.at_risk for lease in self.ledger.leases.fetch_open(run))
        resent = snapshot.record.resent_at_most
        assert resent == self.resent[run]
        assert resent == sum(stop - start for start, stop in self.ledger.leases.fetch_taken_back(run))
        assert sent <= snapshot.lengths.accounted + resent + at_risk

    def check_limits(self) -> None:
        """No limit falls, and no worker knows of a higher one than the ledger."""
        for name, lease in self.fetch_open().items():
            assert self.limits.get(name, 0) <= lease.limit
            self.limits[name] = lease.limit
            assert self.leases[name].limit <= lease.limit

    def check_course(self, record: RunRecord) -> None:
        """A run that is over stays so; one at rest has no open lease and its clock stands still."""
        assert record.state == self.final.get(record.run, record.state)
        if record.state in FINAL_STATES:
            self.final[record.run] = record.state
        if record.is_at_rest:
            assert not self.ledger.leases.fetch_open(record.run)
            assert record.active_since is None
        if record.state == RunState.COMPLETED:
            assert record.accounted == record.requests
        assert (record.ended_at is not None) == (record.state in FINAL_STATES)
        assert record.measure_active_s(self.now) <= self.now - record.created_at
        assert (record.windows > 0) == (record.started_at is not None)
        assert not record.accounted or record.windows


TestLedgerLaws = LedgerLaws.TestCase
TestLedgerLaws.settings = settings(max_examples=15, stateful_step_count=50, deadline=None)
