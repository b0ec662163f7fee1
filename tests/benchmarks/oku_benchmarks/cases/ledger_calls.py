"""Each call of the ledger that the event loop waits for, on a ledger that is large, one after the other."""

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from tests.kit.coordinators.leases import expire
from tests.kit.coordinators.long_ledger import LEASE_LENGTH, LONG_RUN
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules.history import keep_events, keep_second
from oku_coordinator.ledger.rules.leases.intake import fold_batches
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot, fetch_standing
from oku_coordinator.ledger.storage.lease_records import LeaseOrder, LeaseRecord
from oku_coordinator.ledger.tables.deletion_table import begin_deletion, delete_some
from oku_coordinator.ledger.tables.lease_table import deal_leases
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_runs, list_due_summaries
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, Part
from oku_core.results.event import Event, EventType
from oku_core.results.sample import Sample
from oku_core.spec.spec import Spec

_WORKERS = 1_000
_BATCH = 100
_LOST_AT_ONCE = 50
_SECONDS = 200


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call: how often, and how long the longest took."""

    name: str
    times: int
    longest_ms: float


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, and how long it took to delete the long run and to give its space back."""

    calls: list[Call]
    delete_s: float


class _Stopwatch:
    def __init__(self) -> None:
        self._took_ms: dict[str, list[float]] = {}

    def measure(self, name: str, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = call()
        self._took_ms.setdefault(name, []).append(1000 * (time.perf_counter() - began))
        return result

    def list_calls(self) -> list[Call]:
        return [
            Call(name=name, times=len(took_ms), longest_ms=round(max(took_ms), 2))
            for name, took_ms in self._took_ms.items()
        ]


def measure_calls(path: Path) -> Results:
    """Go on with the long run of a ledger as a coordinator does, then delete it."""
    watch = _Stopwatch()
    with closing(Ledger(path)) as ledger:
        _work(ledger, watch, time.time())
        began = time.monotonic()
        watch.measure("delete a run", lambda: change(ledger, begin_deletion, LONG_RUN))
        while watch.measure("remove 500 rows of it", lambda: change(ledger, delete_some, LONG_RUN)):
            pass
        while watch.measure("give 50 pages back", ledger.free_pages):
            pass
        delete_s = time.monotonic() - began
    return Results(calls=watch.list_calls(), delete_s=round(delete_s, 1))


def _work(ledger: Ledger, watch: _Stopwatch, now: float) -> None:
    pause_interrupted(ledger, now)
    change(ledger, change_state, LONG_RUN, RunState.PENDING, now)
    change(ledger, change_state, LONG_RUN, RunState.RUNNING, now)
    leases: list[LeaseRecord] = []
    for first in range(0, 2 * _WORKERS, _BATCH):
        orders = [_build_order(first + number) for number in range(_BATCH)]
        leases += watch.measure(
            f"deal {_BATCH} leases", partial(change, ledger, deal_leases, LONG_RUN, orders, now)
        )
    batches = [_build_batch(lease) for lease in leases]
    for index in range(0, len(batches), _BATCH):
        some = batches[index : index + _BATCH]
        watch.measure(f"fold {_BATCH} checkpoints", partial(change, ledger, fold_batches, some, _allow, now))
    for second in range(_SECONDS):
        sample = Sample(
            at=now + second, seconds=1.0, requests_total=0, accounted=0, leased=0, pending=0, done=0,
            resent_at_most=0, in_flight=0.0, workers=_WORKERS,
        )  # fmt: skip
        watch.measure("keep a second", partial(change, ledger, keep_second, LONG_RUN, sample))
        watch.measure("find the run that has its turn", lambda: read(ledger, fetch_current_run))
        watch.measure("find what owes a summary", lambda: read(ledger, list_due_summaries))
        watch.measure("see how far a run is", lambda: read(ledger, fetch_standing, LONG_RUN))
    event = Event(at=now, type=EventType.WORKER_JOINED, text="worker w1 joined")
    watch.measure("note an event", lambda: change(ledger, keep_events, LONG_RUN, [event]))
    watch.measure("list 100 runs", lambda: read(ledger, fetch_runs, 100))
    watch.measure("sum a run up", lambda: read(ledger, fetch_snapshot, LONG_RUN))
    for index in range(0, len(leases), _LOST_AT_ONCE):
        names = [lease.id for lease in leases[index : index + _LOST_AT_ONCE]]
        lose = partial(expire, ledger, names, ExpiryReason.WORKER_LOST, now)
        watch.measure(f"take {_LOST_AT_ONCE} leases of lost workers back", lose)
    change(ledger, change_state, LONG_RUN, RunState.PAUSED, now)


def _build_order(number: int) -> LeaseOrder:
    return LeaseOrder(f"w{number % _WORKERS}", "b", LEASE_LENGTH, LEASE_LENGTH)


def _build_batch(lease: LeaseRecord) -> CheckpointBatch:
    """The first half of a lease has been answered, with one second and one bucket."""
    count = lease.length // 2
    outcomes = make_counts(count)
    part = Part(
        outcomes=outcomes,
        statuses={"200": count},
        times={
            Time.LATENCY: HistogramSnapshot(
                buckets=[1000, count], sum_us=1000 * count, min_us=1000, max_us=1000
            )
        },
        per_second={1: outcomes},
    )
    checkpoint = Checkpoint(lease=lease.id, sequence=1, done=count, end=lease.length, parts=[part])
    return CheckpointBatch(
        worker=lease.worker, incarnation=lease.incarnation, run=lease.run, checkpoints=[checkpoint]
    )


def _allow(_batch: CheckpointBatch, _spec: Spec) -> int:
    return LEASE_LENGTH
