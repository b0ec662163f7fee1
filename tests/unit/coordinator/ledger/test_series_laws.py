"""The series of a run is its account, whatever happens and in whatever order."""

import json
import math
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.checkpoints import change_checkpoint
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import (
    apply_batches,
    build_batch,
    build_checkpoint,
    deal_if_pending,
    expire,
)
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_reasons

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history, keep_second
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.outbox_table import drop_oldest, fetch_batch
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import NOT_SENT, OUTCOMES, build_no_counts, count_answered
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Part
from oku_core.results.lines import LineKind
from oku_core.results.sample import Sample
from oku_core.spec.spec import Spec

BEGIN = 1_800_000_000
REQUESTS = 200


class _World:
    """A run, its workers and its coordinator, all driven by one source of chance."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path = path
        self.chance = chance
        self.now = float(BEGIN)
        self.ledger = open_ledger(path, publishes=True)
        change(self.ledger, create_run, "r1", Spec(requests=REQUESTS, concurrency=5), self.now)
        change(self.ledger, change_state, "r1", RunState.RUNNING, self.now)
        self.parts: dict[str, Part] = {}
        self.published = build_no_counts()
        self.sent = self.published_sent = 0
        self.times: list[int] = []

    def deal(self) -> None:
        deal_if_pending(self.ledger, "r1", self.chance.randint(1, 40), self.now)

    def report(self, *, is_final: bool | None = None) -> None:
        """A worker reports; its clock may be wrong by half a minute."""
        leases = read(self.ledger, fetch_open_leases, "r1")
        if not leases:
            return
        lease = self.chance.choice(leases)
        done = lease.end if is_final else self.chance.randint(lease.done, lease.end)
        part = self._grow(lease, done)
        checkpoint = change_checkpoint(
            build_checkpoint(lease, done),
            sequence=lease.sequence + 1,
            parts=[part],
            is_final=self.chance.random() < 0.5 if is_final is None else is_final,
            started_at=self.now - self.chance.uniform(0, 40),
        )
        (verdict,) = apply_batches(self.ledger, [build_batch(lease, checkpoint)], self.now, 5)
        assert verdict in {"accounted", "closed"}
        self.parts[lease.id] = part

    def _grow(self, lease: LeaseRecord, done: int) -> Part:
        before = self.parts.get(lease.id, Part())
        outcomes, per_second = list(before.outcomes), dict[int, list[int]]()
        sent = Counter(before.sent_per_second)
        for _ in range(done - sum(outcomes)):
            outcome = self.chance.randrange(NOT_SENT)
            second = int(self.now) + self.chance.randint(-30, 30)
            outcomes[outcome] += 1
            counts = per_second.setdefault(second, list(before.per_second.get(second, build_no_counts())))
            counts[outcome] += 1
            sent[second - self.chance.randint(0, 2)] += 1
            self.sent += 1
        latency = Histogram()
        for _ in range(count_answered(outcomes)):
            latency.record(1000)
        answered = count_answered(outcomes)
        return Part(
            outcomes=outcomes,
            reasons=make_reasons(outcomes),
            statuses={"200": answered} if answered else {},
            times={Time.LATENCY: latency.build_latency()},
            per_second=before.per_second | per_second,
            sent_per_second=dict(sent),
        )

    def kill_worker(self) -> None:
        leases = read(self.ledger, fetch_open_leases, "r1")
        if leases:
            lost = self.chance.choice(leases).id
            expire(self.ledger, [lost], ExpiryReason.WORKER_LOST, self.now)

    def kill_coordinator(self) -> None:
        self.ledger.close()
        self.now += self.chance.uniform(0.5, 9)
        self.ledger = Ledger(self.path, publishes=True)

    def tick(self, *, is_last: bool = False) -> None:
        self.now += self.chance.choice([1.0, 1.0, 1.0, 0.2, 1.7])
        sample = Sample(
            at=self.now, seconds=1.0, requests_total=REQUESTS, accounted=0, leased=0, pending=REQUESTS,
            done=0, resent_at_most=0, active_s=self.now - BEGIN, in_flight=5, workers=1,
        )  # fmt: skip
        settled_to = math.inf if is_last else self.now - self.chance.uniform(-1, 6)
        change(self.ledger, keep_second, "r1", sample, state="running", settled_to=settled_to)

    def publish(self) -> None:
        """Loki takes some lines, or the outbox is too full."""
        change(self.ledger, drop_oldest, self.chance.choice([0, 10**6]))
        lines = change(self.ledger, fetch_batch, self.chance.randint(1, 500), 10**9, self.now)
        change(self.ledger, outbox_table.remove, lines)
        for line in lines:
            if line.kind == LineKind.TICK:
                fields = json.loads(line.text)
                assert fields["requests_ended"] == sum(fields[name] for name in OUTCOMES)
                said = [fields[outcome] for outcome in OUTCOMES]
                self.published = [a + b for a, b in zip(self.published, said, strict=True)]
                self.published_sent += fields["requests_sent"]
                self.times.append(line.at_ns)

    def finish(self) -> None:
        while read(self.ledger, fetch_run, "r1").state == RunState.RUNNING:
            self.deal()
            self.report(is_final=True)
        self.tick(is_last=True)
        while read(self.ledger, outbox_table.measure).lines:
            self.publish()

    def check(self) -> list[int]:
        """All samples together are the account, at any moment."""
        samples = read(self.ledger, fetch_history, "r1").samples
        counts = (sample.outcomes for sample in samples)
        total = [sum(column) for column in zip(build_no_counts(), *counts, strict=True)]
        assert total == read(self.ledger, fetch_run, "r1").outcomes
        assert sum(sample.requests_sent for sample in samples) == self.sent
        return total


_ACTS = ("deal", "report", "report", "report", "kill_worker", "kill_coordinator", "tick", "tick", "publish")


@settings(max_examples=settings().max_examples // 2)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(_ACTS), max_size=40), st.sampled_from([12, 3600]))
def test_samples_and_ticks_sum_to_the_account(seed: int, acts: list[str], most_samples: int) -> None:
    """Workers and coordinators are killed, clocks are wrong, samples are merged, the outbox is too full."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("oku_coordinator.ledger.tables.history_table.MOST_SAMPLES", most_samples)
        world = _World(Path(folder) / "ledger.sqlite3", random.Random(seed))
        for act in acts:
            getattr(world, act)()
            world.check()
        world.finish()
        total = world.check()
        assert sum(total) == REQUESTS
        assert world.published == total
        assert world.published_sent == world.sent == REQUESTS
        assert len(set(world.times)) == len(world.times)
        world.ledger.close()
