import json
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from tests.kit.coordinators.leases import Apply, BeginRun, Deal, MakeBatch, apply_batches
from tests.kit.coordinators.long_ledger import LONG_RUN, make_long_ledger
from tests.kit.coordinators.transactions import change, commit_after_next_read, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import keep_events, keep_second
from oku_coordinator.ledger.rules.leases.waves import start_clock
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.runs.run_documents import write_failures, write_run_history
from oku_coordinator.runs.summary.summaries import build_summary
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.index_ranges import pack_ranges
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES, Outcome, ReasonCount
from oku_core.messaging.checkpoint import Part
from oku_core.results.event import Event, EventType
from oku_core.results.sample import Sample

BOUND_MB = 8


def write(ledger: Ledger, run: str = "r1") -> list[bytes]:
    """The pieces of the history of a run at 9 s."""
    return list(write_run_history(ledger, build_summary(read(ledger, fetch_snapshot, run), 9.0), 9.0))


def test_the_history_is_all_that_is_kept_of_a_run(
    ledger: Ledger,
    deal: Deal,
    make_batch: MakeBatch,
    apply: Apply,
) -> None:
    """They make one JSON document with a line for each item, which ends with what was sent again."""
    sample = Sample(
        at=5.0, seconds=1.0, requests_total=100, accounted=10, leased=0, pending=90, done=10,
        resent_at_most=0, in_flight=1.0, workers=1,
    )  # fmt: skip
    event = Event(at=4.0, type=EventType.WORKER_JOINED, text="worker w1 joined", worker="w1")
    apply([make_batch(deal(10))], 4.0)
    change(ledger, keep_second, "r1", sample)
    change(ledger, keep_events, "r1", [event])
    text = b"".join(write(ledger))
    document = json.loads(text)
    assert (document["at"], document["summary"]["accounted"], document["spec"]["requests"]) == (9.0, 10, 100)
    assert [(each["at"], each["requests_ended"]) for each in document["samples"]] == [(4.0, 10), (5.0, 0)]
    assert [each["text"] for each in document["events"]][-1] == "worker w1 joined"
    (lease,) = document["leases"]
    assert (lease["start"], lease["stop"], lease["ranges"], lease["state"]) == (0, 10, [], "closed")
    assert document["slices"] == [[0, 10, "accounted"], [10, 100, "pending"]]
    assert (document["again"], document["periods"]) == ([], [])
    lines = text.splitlines()
    assert lines[1] == b',"samples":['
    slices = lines[lines.index(b',"slices":[') + 1 : lines.index(b',"again":[') - 1]
    assert [json.loads(line.lstrip(b",")) for line in slices] == document["slices"]


def test_the_failures_of_a_run_are_of_one_state_of_the_ledger(
    ledger: Ledger,
    deal: Deal,
    make_batch: MakeBatch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last checkpoint of a run may be committed between any two transactions."""
    outcomes = make_counts(0, timeout=100)
    part = Part(
        outcomes=outcomes,
        times={Time.LATENCY: HistogramSnapshot()},
        per_second={3: outcomes},
        reasons=[ReasonCount(OUTCOMES.index(Outcome.TIMEOUT), "no answer within 10s", 100, 0, 99)],
        failed={Outcome.TIMEOUT: pack_ranges([(0, 100)])},
    )
    final = make_batch(deal(100), parts=[part])
    commit_after_next_read(monkeypatch, ledger, lambda: apply_batches(ledger, [final], 4.0))
    for said in (("running", 0), ("completed", 100)):
        document = json.loads(b"".join(write_failures(ledger, "r1")))
        assert (document["state"], document["requests"]) == said


def test_the_history_tells_when_the_clock_of_a_run_ran(ledger: Ledger, begin_run: BeginRun) -> None:
    """Charts need it to place what was planned."""
    begin_run()
    change(ledger, start_clock, "r1", 3.0, 0.0)
    document = json.loads(b"".join(write(ledger)))
    assert document["periods"] == [{"starts_at": 3.0, "offset_s": 0.0, "stop_s": None}]


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
def test_leases_and_slices_come_in_pages(
    ledger: Ledger, deal: Deal, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Each of them is there once, in the order in which they were dealt, and none of another run."""
    monkeypatch.setattr("oku_coordinator.ledger.batches.PAGE", page)
    leases = [deal(1) for _ in range(12)]
    deal(1, run="r1.x")
    deal(1, run="r")
    document = json.loads(b"".join(write(ledger)))
    assert [lease["id"] for lease in document["leases"]] == [lease.id for lease in leases]
    assert len(document["slices"]) == 13


def test_the_history_of_very_many_leases_takes_little_memory(path: Path) -> None:
    """It is written while it is read, and no call looks at more than a thousand rows."""
    make_long_ledger(path, runs=0, leases=50_000, samples=3)
    with closing(Ledger(path, read_only=True)) as ledger:
        summary = build_summary(read(ledger, fetch_snapshot, LONG_RUN), 9.0)
        tracemalloc.start()
        lines = sum(piece.count(b"\n") for piece in write_run_history(ledger, summary, 9.0))
        peak_mb = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    assert lines > 50_000
    assert peak_mb < BOUND_MB
