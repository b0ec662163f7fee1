"""The laws over the ledger: whatever comes, in whatever order, nothing is lost and nothing counted twice."""

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.kit.checkpoints import change_checkpoint
from tests.kit.coordinators import leases as lease_changes
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import build_batch, build_incarnation
from tests.kit.coordinators.transactions import change, read
from tests.kit.fast_folder import find_fast_folder
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.failed_requests import fetch_failed_requests
from oku_coordinator.ledger.rules.leases.intake import fold_batches
from oku_coordinator.ledger.rules.leases.unsent import account_not_dealt
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.rules.snapshots import Snapshot, fetch_snapshot, fetch_standing
from oku_coordinator.ledger.storage.lease_records import LeaseOrder, LeaseRecord, Receipt
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.accounts.series_table import fetch_series
from oku_coordinator.ledger.tables.lease_table import (
    deal_leases,
    fetch_fleet,
    fetch_open_leases,
    fetch_taken_back,
)
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.ledger.tables.slice_table import count_pending, fetch_slices
from oku_coordinator.runs.summary.summaries import build_summary
from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.index_ranges import Range, Room
from oku_core.accounting.interval import SliceState, check_partition
from oku_core.accounting.lease_state import ExpiryReason, MessageVerdict
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import (
    NOT_DEALT,
    OUTCOMES,
    Outcome,
    build_no_causes,
    build_no_counts,
    count_answered,
    count_sent,
)
from oku_core.accounting.run_state import FINAL_STATES, TRANSITIONS, RunState
from oku_core.messaging.checkpoint import MOST_FAILED_RANGES, Checkpoint, LeaseFigures, Part
from oku_core.spec.load import build_schedule
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.request_template import find_target_turns
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_workers.executions.failure_counts import Failures

RUNS = ("r1", "r2")
WORKERS = ("w1", "w2", "w3")
NAMES = ("odd", "even")
"""Of the targets, by whether the position of a request is even."""
TARGETS = tuple(Target(name=name, url=f"http://shop.test/{name}") for name in NAMES)
SENT = [outcome for outcome in OUTCOMES if outcome not in {Outcome.NOT_SENT, Outcome.LOST}]
"""What may come of a request that is sent."""
ANSWERED = {Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.FAILED_CHECK}
ACCEPTED = {MessageVerdict.ACCOUNTED, MessageVerdict.CLOSED}


class Answer(NamedTuple):
    """What became of a request.

    Attributes:
        cause: why it was not sent, as an index of `NOT_SENT_CAUSES`; -1 if it was.
        phase: that it belongs to.
        name: of its target.
    """

    outcome: Outcome
    second: int = 0
    latency_us: int = 0
    lateness_us: int = 0
    cause: int = -1
    phase: str = ""
    name: str = ""

    @property
    def is_told(self) -> bool:
        """Whether a worker has told of it."""
        return self.outcome != Outcome.LOST and self.cause != NOT_DEALT

    @property
    def was_sent(self) -> bool:
        """Whether it was sent and has ended."""
        return self.outcome not in {Outcome.NOT_SENT, Outcome.LOST}

    def list_timings(self) -> list[tuple[Time, int]]:
        """What a worker tells of its time: each third was split, and one that was cut off had connected."""
        if self.outcome == Outcome.DISCONNECTED:
            return [(Time.CONNECT, self.latency_us), (Time.TLS, 900)]
        if self.outcome not in ANSWERED or self.latency_us % 3:
            return []
        first_us = self.latency_us // 3
        times_us = (self.latency_us, first_us, self.latency_us - first_us)
        return list(zip((Time.SPLIT_LATENCY, Time.SPLIT_FIRST_BYTE, Time.TRANSFER), times_us, strict=True))


@dataclass(frozen=True)
class Kind:
    """What a run is: its spec, and whether its requests have due times."""

    spec: Spec

    @property
    def is_open(self) -> bool:
        """Whether it has a rate."""
        return self.spec.is_open

    def find_phase(self, index: int) -> str:
        """The phase that a request belongs to."""
        return build_schedule(self.spec).find_phase(index).name if self.is_open else ""

    def find_target(self, index: int) -> str:
        """The target that a request goes to."""
        turns = find_target_turns(self.spec)
        return NAMES[turns[index % len(turns)]]


def build_closed(requests: int) -> Spec:
    """A run of so many requests."""
    return Spec(requests=requests, targets=TARGETS)


def build_timed(requests: int) -> Spec:
    """A run that ends after a time, or after twice as many requests."""
    return Spec(requests=2 * requests, duration_s=10.0, targets=TARGETS)


def build_open(requests: int) -> Spec:
    """A run with a rate and two phases."""
    first = requests // 3
    stages = [f"{first}s:1..1/s"] * bool(first)
    spec = parse_spec(Source(None, {"stages": [*stages, f"{requests - first}s:1..1/s"]}))
    return msgspec.structs.replace(spec, targets=TARGETS)


@dataclass
class WorkedLease:
    """A lease as the worker has it that carries it out, and what it has said of it."""

    record: LeaseRecord
    limit: int
    end: int
    phase: str = ""
    is_open: bool = False
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
    told_sent: int = 0
    """How many requests the ledger knows that the worker has sent."""
    expired: ExpiryReason | None = None
    risked: set[int] = field(default_factory=set)
    """What may have been sent in vain of a lease that was taken back."""

    def expire(self, record: LeaseRecord, reason: ExpiryReason) -> None:
        """Take the lease back, as the ledger last knew it."""
        assert self.expired is None
        self.expired = reason
        self.risked = {*record.in_flight, *range(record.done, record.bound)}
        assert len(self.risked) == record.at_risk

    @property
    def in_flight(self) -> list[int]:
        """The positions that were taken and have not ended."""
        return [position for position in range(self.taken) if position not in self.answers]

    def list_sent(self, done: int) -> list[int]:
        """The positions below one that were sent, ended or not."""
        return [place for place in range(done) if place not in self.answers or self.answers[place].was_sent]

    def build_parts(self) -> dict[str, Part]:
        """What came of each name so far."""
        parts = {name: self._build_part(name) for name in NAMES}
        return {name: part for name, part in parts.items() if sum(part.outcomes) or part.sent_per_second}

    def _build_part(self, name: str) -> Part:
        mine = [answer for place, answer in self.answers.items() if NAMES[place % 2 == 0] == name]
        outcomes, causes, statuses = dict.fromkeys(OUTCOMES, 0), build_no_causes(), Counter[str]()
        times = {time: Histogram() for time in Time}
        seconds: dict[int, list[int]] = {}
        for answer in mine:
            outcomes[answer.outcome] += 1
            seconds.setdefault(answer.second, build_no_counts())[OUTCOMES.index(answer.outcome)] += 1
            if answer.outcome in ANSWERED:
                statuses["200" if answer.outcome == Outcome.OK else "500"] += 1
                times[Time.LATENCY].record(answer.latency_us)
            for timing, value_us in answer.list_timings():
                times[timing].record(value_us)
            if answer.outcome == Outcome.NOT_SENT:
                causes[answer.cause] += 1
            elif self.is_open:
                times[Time.LATENESS].record(answer.lateness_us)
                if answer.outcome in ANSWERED:
                    times[Time.RESPONSE_TIME].record(answer.lateness_us + answer.latency_us)
        failures = Failures(Room(MOST_FAILED_RANGES))
        for place, answer in self.answers.items():
            if NAMES[place % 2 == 0] == name and answer.outcome != Outcome.OK:
                failures.record(OUTCOMES.index(answer.outcome), place, f"reason {answer.second % 3}")
        sent = Counter(place % 6 for place in self.list_sent(self.taken) if NAMES[place % 2 == 0] == name)
        return Part(
            phase=self.phase, name=name, outcomes=list(outcomes.values()), not_sent=causes,
            statuses=dict(statuses), bytes_received=7 * len(mine),
            per_second=seconds, sent_per_second=dict(sent), reasons=failures.build_reasons(),
            failed=failures.build_failed(), failed_reasons=failures.build_failed_reasons(),
            times={time: held.build_latency() for time, held in times.items() if held.total},
        )  # fmt: skip

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
            figures=LeaseFigures(
                started_at=0.5 if self.taken else 0.0, ended_at=1000.0, cpu_s=0.1 * len(self.answers),
                saturated=len(self.answers), busy_share=1.0, watched_s=self.taken / 4,
                underfilled_s=self.taken / 8,
            ),
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
    sent = {
        second: count
        for second, count in part.sent_per_second.items()
        if known.sent_per_second.get(second) != count
    }
    return msgspec.structs.replace(part, per_second=fresh, sent_per_second=sent)


def check_timings(account: Account, answers: Iterable[Answer]) -> None:
    """How the time is split is that of these answers, each once."""
    told = [timing for answer in answers for timing in answer.list_timings()]
    for time in set(Time) - set(LIVE_TIMES):
        values_us, histogram = (
            [value_us for timing, value_us in told if timing == time],
            account.histogram(time),
        )
        assert (histogram.total, histogram.sum_us) == (len(values_us), sum(values_us)), time


KINDS = st.sampled_from([build_closed, build_timed, build_open])
RANGES = st.lists(st.tuples(st.integers(0, 199), st.integers(1, 200)), min_size=1, max_size=4)


class LedgerLaws(RuleBasedStateMachine):
    """Coordinator, broker and workers in every order; the ledger must keep its laws after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=find_fast_folder())
        self.now = 0.0
        self.leases: dict[str, WorkedLease] = {}
        self.limits: dict[str, int] = {}
        self.counted: dict[str, Counter[int]] = {}
        self.resent: dict[str, int] = {}
        self.answers: dict[str, list[Answer]] = {}
        self.kinds: dict[str, Kind] = {}
        self.final: dict[str, RunState] = {}
        self.open()

    def open(self) -> None:
        """Open the file, as a restarted coordinator does."""
        self.ledger = open_ledger(Path(self.folder.name) / "ledger.sqlite3", publishes=True)

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
        return read(self.ledger, fetch_run, run).state

    def pick(self, data: st.DataObject, *, is_worked: bool = False) -> WorkedLease | None:
        """Some lease; or one on which its worker still works."""
        leases = [lease for lease in self.leases.values() if not (is_worked and lease.is_over)]
        return data.draw(st.sampled_from(leases)) if leases else None

    # What may happen

    @initialize(spec=st.builds(lambda build, requests: build(requests), KINDS, st.integers(1, 60)))
    def submit_first(self, spec: Spec) -> None:
        """Submit the first run."""
        self.submit(spec)

    @precondition(lambda self: len(self.counted) < len(RUNS))
    @rule(spec=st.builds(lambda build, requests: build(requests), KINDS, st.integers(1, 200)))
    def submit(self, spec: Spec) -> None:
        """Submit another run."""
        run = RUNS[len(self.counted)]
        self.kinds[run] = Kind(spec)
        change(self.ledger, create_run, run, spec, self.tick())
        self.counted[run], self.resent[run], self.answers[run] = Counter(), 0, []

    @rule()
    def give_turn(self) -> None:
        """Let the run begin that has its turn, as the dispatcher does."""
        run = read(self.ledger, fetch_current_run)
        if run is not None and run.state == RunState.PENDING:
            change(self.ledger, lifecycle.change_state, run.run, RunState.RUNNING, self.tick())

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
        pending = read(self.ledger, count_pending, run) if self.state(run) == RunState.RUNNING else 0
        orders = [
            LeaseOrder(worker, build_incarnation(worker), size, allowance)
            for worker, size, allowance in wanted
        ]
        leases = change(self.ledger, deal_leases, run, orders, self.tick())
        assert sum(lease.length for lease in leases) == min(pending, sum(size for _, size, _ in wanted))
        for lease in leases:
            assert lease.id not in self.leases
            kind = self.kinds[run]
            self.leases[lease.id] = WorkedLease(
                lease,
                limit=lease.limit,
                end=lease.end,
                phase=kind.find_phase(lease.start),
                is_open=kind.is_open,
            )

    @rule(data=st.data(), take=st.integers(0, 20), answers=st.integers(0, 20), unsent=st.integers(0, 5))
    def work(self, data: st.DataObject, take: int, answers: int, unsent: int) -> None:
        """Let a worker take requests, as far as it may, and let some of those in flight end.

        In an open run, it may be too late for some that it takes.
        """
        lease = self.pick(data, is_worked=True)
        if lease is None:
            return
        taken = lease.taken
        lease.taken = max(lease.taken, min(lease.taken + take, lease.limit, lease.end))
        for position in range(taken, min(lease.taken, taken + unsent * lease.is_open)):
            lease.answers[position] = Answer(
                Outcome.NOT_SENT, data.draw(st.integers(0, 5)), cause=position % 2, phase=lease.phase
            )
        in_flight = lease.in_flight
        for position in data.draw(st.permutations(in_flight))[:answers] if in_flight else []:
            lease.answers[position] = Answer(
                data.draw(st.sampled_from(SENT)), data.draw(st.integers(0, 5)),
                data.draw(st.integers(0, 10_000)), data.draw(st.integers(0, 100)), phase=lease.phase,
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

    @rule(data=st.data(), allowance=st.integers(0, 60), has_reports=st.booleans())
    def deliver(self, data: st.DataObject, allowance: int, *, has_reports: bool) -> None:
        """Deliver checkpoints in a batch: early, late, doubled, in any order; others are lost."""
        said = [(lease, checkpoint) for lease in self.leases.values() for checkpoint in lease.said]
        if not said:
            return
        drawn = data.draw(st.lists(st.sampled_from(said), min_size=1, max_size=4))
        batches = [build_batch(lease.record, checkpoint) for lease, checkpoint in drawn]
        resting = {run for run in self.counted if read(self.ledger, fetch_run, run).is_at_rest}
        receipts = change(self.ledger, fold_batches, batches, lambda _batch, _spec: allowance, self.tick())
        for (lease, checkpoint), receipt in zip(drawn, receipts, strict=True):
            assert receipt.verdicts == [self.judge(lease, checkpoint)]
            if receipt.verdicts[0] in ACCEPTED:
                self.count(lease, checkpoint)
            elif checkpoint.is_final and lease.record.run not in resting:
                self.lower_resent(lease, checkpoint)
            if has_reports:
                self.hear(receipt)

    def lower_resent(self, lease: WorkedLease, checkpoint: Checkpoint) -> None:
        """Count what was certainly not sent, as the last checkpoint of a lease that was taken back says."""
        known = lease.risked.intersection(lease.list_sent(checkpoint.done))
        self.resent[lease.record.run] -= len(lease.risked) - len(known)
        lease.risked = known

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
        self.answers[run] += [
            lease.answers[position]._replace(name=NAMES[position % 2 == 0]) for position in fresh
        ]
        lease.accounted, lease.committed = covered, checkpoint.sequence
        lease.told_sent = len(lease.list_sent(checkpoint.done))
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
        record = next(
            r for r in read(self.ledger, fetch_open_leases, lease.record.run) if r.id == lease.record.id
        )
        lies: list[dict[str, Any]] = [
            {"lease": f"{truth.lease}0"},
            {"lease": "\ud800"},
            {"sequence": 0, "done": truth.done + 1},
            {"done": record.bound + 1, "end": truth.end + 1},
            {"end": truth.done - 1},
            {"in_flight": [*truth.in_flight, truth.done]},
            {"parts": [*truth.parts, Part(name="forged", outcomes=make_counts(timeout=1))]},
            {"parts": [Part(name="\n"), *truth.parts]},
            {"saturated": truth.covered + 1},
            {"parts": [msgspec.structs.replace(part, phase="forged") for part in truth.parts]
                or [Part(phase="forged")]},
        ]  # fmt: skip
        if lease.accounted:
            lies.append({"in_flight": sorted({*truth.in_flight, min(lease.accounted)})})
            lies.append({"done": 0, "in_flight": [], "parts": []})
        lie = change_checkpoint(truth, **data.draw(st.sampled_from(lies)))
        before = {run: self.describe(run) for run in self.counted}
        batch = build_batch(lease.record, lie, **data.draw(st.sampled_from([{}, {"incarnation": "b9"}])))
        receipts = change(self.ledger, fold_batches, [batch], lambda _batch, _spec: 0, self.tick())
        silent = {MessageVerdict.UNTRUE, MessageVerdict.UNKNOWN, MessageVerdict.FOREIGN}
        silent.add(MessageVerdict.REPEATED if lie.sequence == 0 else MessageVerdict.UNTRUE)
        assert set(receipts[0].verdicts) <= silent
        assert {run: self.describe(run) for run in self.counted} == before

    def describe(self, run: str) -> object:
        """Everything that the ledger keeps of a run."""
        snapshot = read(self.ledger, fetch_snapshot, run)
        account = snapshot.account
        return (
            read(self.ledger, fetch_slices, run), snapshot.record, read(self.ledger, fetch_standing, run),
            read(self.ledger, fetch_open_leases, run), read(self.ledger, fetch_fleet, run),
            snapshot.workers, snapshot.flags,
            account.build_counts(),
        )  # fmt: skip

    @rule(run=st.sampled_from(RUNS), ranges=RANGES)
    def find_unsent(self, run: str, ranges: list[Range]) -> None:
        """Find that no worker had some requests of an open run in time."""
        if run not in self.counted or not self.kinds[run].is_open:
            return
        ranges = [(start, min(stop, self.kinds[run].spec.requests)) for start, stop in ranges]
        pending = set() if self.state(run) in FINAL_STATES else self.list_pending(run)
        due = {index for start, stop in ranges for index in range(start, stop)} & pending
        assert change(self.ledger, account_not_dealt, run, ranges, self.tick()) == len(due)
        self.count_unsent(run, due, Outcome.NOT_SENT, NOT_DEALT)

    def list_pending(self, run: str) -> set[int]:
        """The indices of a run that are pending."""
        slices = read(self.ledger, fetch_slices, run)
        return {
            index
            for start, stop, state in slices
            if state == SliceState.PENDING
            for index in range(start, stop)
        }

    def count_unsent(self, run: str, indices: Iterable[int], outcome: Outcome, cause: int = -1) -> None:
        """Count what the coordinator has accounted for by itself."""
        indices = list(indices)
        self.counted[run].update(indices)
        self.answers[run] += [
            Answer(
                outcome,
                cause=cause,
                phase=self.kinds[run].find_phase(index),
                name=self.kinds[run].find_target(index),
            )
            for index in indices
        ]

    @rule(run=st.sampled_from(RUNS))
    def end_time(self, run: str) -> None:
        """Find that the time of a run is over; what is pending then is unused, once no lease is open."""
        if run not in self.counted:
            return
        record, is_timed = read(self.ledger, fetch_run, run), self.kinds[run].spec.is_timed
        ends = record.is_active and is_timed and not read(self.ledger, fetch_open_leases, run)
        assert change(self.ledger, lifecycle.end_time, run, self.tick()) == (
            ends or record.state in FINAL_STATES
        )
        if ends:
            assert self.state(run) == RunState.COMPLETED

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), reason=st.sampled_from(ExpiryReason), lost=st.integers(0, 4))
    def expire(self, data: st.DataObject, reason: ExpiryReason, lost: int) -> None:
        """Take leases back as the coordinator does, for whatever reason, rightly or not, also twice.

        Of open runs, what may have been sent may be past its time.
        """
        names = data.draw(st.lists(st.sampled_from(list(self.leases)), min_size=1, max_size=3))
        records = self.fetch_open()

        def find_lost(record: LeaseRecord, ranges: Sequence[Range]) -> Sequence[Range]:
            return ranges[:lost] if self.kinds[record.run].is_open else ()

        for name in lease_changes.expire(self.ledger, names, reason, self.tick(), find_lost):
            lease, record = self.leases[name], records[name]
            gone = find_lost(record, record.list_at_risk())
            indices = itertools.chain.from_iterable(range(*each) for each in gone)
            self.count_unsent(record.run, indices, Outcome.LOST)
            lease.expire(record, reason)
            self.resent[record.run] += len(lease.risked)

    def fetch_open(self) -> dict[str, LeaseRecord]:
        """The open leases of all runs."""
        return {
            lease.id: lease for run in self.counted for lease in read(self.ledger, fetch_open_leases, run)
        }

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def shorten_to_limits(self, data: st.DataObject) -> None:
        """End leases of suspect workers at their limits."""
        names = data.draw(st.lists(st.sampled_from(list(self.leases)), min_size=1, max_size=3))
        for lease in lease_changes.shorten_to_limits(self.ledger, names, self.tick()):
            assert lease.end == lease.bound

    @rule(run=st.sampled_from(RUNS), state=st.sampled_from(RunState))
    def change_state(self, run: str, state: RunState) -> None:
        """Pause, resume or cancel a run."""
        wanted = {RunState.PAUSING, RunState.PENDING, RunState.CANCELLING}
        if run not in self.counted or state not in wanted or state not in TRANSITIONS[self.state(run)]:
            return
        change(self.ledger, lifecycle.change_state, run, state, self.tick())

    @rule(but=st.none() | st.sampled_from(RUNS))
    def pause_interrupted(self, but: str | None) -> None:
        """Kill the whole stack, and prepare for the next one."""
        records = self.fetch_open()
        pause_interrupted(self.ledger, self.tick(), but=but)
        for name, record in records.items():
            self.leases[name].expire(record, ExpiryReason.STACK_LOST)
            self.resent[record.run] += len(self.leases[name].risked)
        assert all(read(self.ledger, fetch_run, run).is_at_rest for run in self.counted if run != but)

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
        snapshots = [read(self.ledger, fetch_snapshot, run) for run in self.counted]
        for snapshot in snapshots:
            self.check_conservation(snapshot)
            self.check_account(snapshot)
            self.check_failures(snapshot)
            self.check_what_was_sent(snapshot)
            self.check_course(snapshot.record)
        self.check_limits()
        active = [s for s in snapshots if not s.record.is_at_rest and s.record.state != RunState.PENDING]
        assert len(active) <= 1

    def check_conservation(self, snapshot: Snapshot) -> None:
        """The ranges are disjoint and together the request space; each index is accounted at most once."""
        run = snapshot.record.run
        assert snapshot.breach is None
        slices = read(self.ledger, fetch_slices, run)
        lengths = check_partition(slices, self.kinds[run].spec.requests)
        assert lengths.unused == self.kinds[run].spec.requests - snapshot.record.requests
        held = read(self.ledger, fetch_open_leases, run)
        leased = [(piece.start, piece.stop) for piece in slices if piece.state == SliceState.LEASED]
        assert leased == sorted(piece for lease in held for piece in lease.ranges.cut(0, lease.end))
        assert read(self.ledger, fetch_standing, run).leases == {lease.id: lease.outcomes for lease in held}
        accounted = [
            range(piece.start, piece.stop) for piece in slices if piece.state == SliceState.ACCOUNTED
        ]
        indices = set(itertools.chain.from_iterable(accounted))
        for lease in held:
            indices.update(lease.ranges.list_indices(self.leases[lease.id].accounted))
        assert self.counted[run] == dict.fromkeys(indices, 1)
        assert snapshot.lengths.accounted == len(indices)

    def check_account(self, snapshot: Snapshot) -> None:
        """Outcomes, statuses, distributions and the workers' requests are those of what is accounted."""
        run = snapshot.record.run
        account, answers = snapshot.account, self.answers[run]
        told = [answer for answer in answers if answer.is_told]
        assert account.outcomes == [sum(a.outcome == outcome for a in answers) for outcome in OUTCOMES]
        assert account.not_sent == [sum(a.cause == cause for a in answers) for cause in range(3)]
        assert sum(account.outcomes) == snapshot.record.accounted
        answered = count_answered(account.outcomes)
        assert (
            account.histogram(Time.LATENCY).build_latency().total
            == account.histogram(Time.LATENCY).total
            == answered
        )
        assert account.histogram(Time.LATENCY).sum_us == sum(
            a.latency_us for a in answers if a.outcome in ANSWERED
        )
        assert sum(account.statuses.values()) == answered
        assert account.bytes_received == 7 * len(told)
        assert sum(worker.requests for worker in snapshot.workers) == len(told)
        due = (answered, count_sent(account.outcomes)) if self.kinds[run].is_open else (0, 0)
        assert (account.histogram(Time.RESPONSE_TIME).total, account.histogram(Time.LATENESS).total) == due
        if self.kinds[run].is_open:
            assert account.histogram(Time.LATENESS).sum_us == sum(
                a.lateness_us for a in answers if a.was_sent
            )
        names = {(answer.phase, answer.name) for answer in answers}
        for name in snapshot.accounts.parts.keys() | names:
            part = snapshot.accounts.parts[name]
            mine = [answer for answer in answers if (answer.phase, answer.name) == name]
            assert part.outcomes == [sum(a.outcome == outcome for a in mine) for outcome in OUTCOMES]
            assert part.histogram(Time.LATENCY).sum_us == sum(
                a.latency_us for a in mine if a.outcome in ANSWERED
            )
            check_timings(part, mine)
        check_timings(account, answers)
        targets = build_summary(snapshot, self.now).targets
        assert [target.name for target in targets] == list(NAMES)
        for target in targets:
            mine = [answer for answer in answers if answer.name == target.name]
            assert target.requests == len(mine)
            assert target.outcomes.ok == sum(answer.outcome == Outcome.OK for answer in mine)

    def check_failures(self, snapshot: Snapshot) -> None:
        """Each request that is accounted and not ok has a reason, and its index is listed as what it is."""
        run = snapshot.record.run
        outcomes = snapshot.account.outcomes
        sums = Counter[int]()
        for count in snapshot.account.reasons.values():
            sums[count.outcome] += count.requests
        assert [sums[place] for place in range(len(OUTCOMES))] == [0, *outcomes[1:]]
        failed = read(self.ledger, fetch_failed_requests, run)
        assert (failed.requests, failed.unlisted) == (sum(outcomes[1:]), 0)
        listed = {
            index: (span.outcome, span.name)
            for span in failed.spans
            for index in range(span.start, span.stop)
        }
        assert len(listed) == failed.requests
        sums = Counter(OUTCOMES.index(outcome) for outcome, _ in listed.values())
        assert [sums[place] for place in range(len(OUTCOMES))] == [0, *outcomes[1:]]
        for lease in self.leases.values():
            for position in lease.accounted if lease.record.run == run else ():
                answer = lease.answers[position]
                wanted = None if answer.outcome == Outcome.OK else (answer.outcome, NAMES[position % 2 == 0])
                assert listed.get(lease.record.ranges.index_at(position)) == wanted

    def check_what_was_sent(self, snapshot: Snapshot) -> None:
        """No more was sent than is accounted, at risk or resent, and no more counts as resent than must."""
        run = snapshot.record.run
        sent = sum(lease.taken for lease in self.leases.values() if lease.record.run == run)
        at_risk = sum(lease.at_risk for lease in read(self.ledger, fetch_open_leases, run))
        resent = snapshot.record.resent_at_most
        assert resent == self.resent[run]
        assert resent == sum(stop - start for start, stop in read(self.ledger, fetch_taken_back, run))
        assert sent <= snapshot.lengths.accounted + resent + at_risk
        rows = read(self.ledger, lambda transaction: fetch_series(transaction, run))
        told = sum(lease.told_sent for lease in self.leases.values() if lease.record.run == run)
        assert sum(row.sent for row in rows) == told

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
            assert not read(self.ledger, fetch_open_leases, record.run)
            assert record.active_since is None
        if record.state == RunState.COMPLETED:
            assert record.accounted == record.requests
        assert (record.ended_at is not None) == (record.state in FINAL_STATES)
        assert record.measure_active_s(self.now) <= self.now - record.created_at
        assert (record.periods > 0) == (record.started_at is not None)
        assert record.periods or not any(answer.is_told for answer in self.answers[record.run])


TestLedgerLaws = LedgerLaws.TestCase
TestLedgerLaws.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=50)
