import json
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from tests.kit.coordinators.leases import Apply, BeginRun, Deal, MakeBatch, apply_batches
from tests.kit.coordinators.long_ledger import LONG_RUN, make_long_ledger
from tests.kit.coordinators.transactions import change, commit_after_next_read, read
from tests.kit.outcomes import make_counts
from tests.kit.runs.scanned import keep_data

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import keep_events, keep_second
from oku_coordinator.ledger.rules.leases.waves import start_clock
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.runs.run_documents import read_run_rows, write_failures, write_run_history
from oku_coordinator.runs.summary.summaries import build_summary
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.index_ranges import pack_ranges
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES, Outcome, ReasonCount
from oku_core.errors import UserError
from oku_core.messaging.checkpoint import Part
from oku_core.results.event import Event, EventType
from oku_core.results.run_api import MOST_ROWS
from oku_core.results.sample import Sample
from oku_core.spec.spec import Spec

BOUND_MB = 3


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


@pytest.mark.heavy
def test_the_history_of_very_many_leases_takes_little_memory(path: Path) -> None:
    """It is written while it is read, and no call looks at more than a thousand rows."""
    make_long_ledger(path, runs=0, leases=10_000, samples=3)
    with closing(Ledger(path, read_only=True)) as ledger:
        summary = build_summary(read(ledger, fetch_snapshot, LONG_RUN), 9.0)
        tracemalloc.start()
        lines = sum(piece.count(b"\n") for piece in write_run_history(ledger, summary, 9.0))
        peak_mb = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    assert lines > 10_000
    assert peak_mb < BOUND_MB


CONTENT = "a,b\n" + "".join(f"{row},x{row}\n" for row in range(5000))


def test_rows_of_indices_are_read(tmp_path: Path) -> None:
    """Those that are asked for, by their columns."""
    files = tmp_path / "files"
    spec = Spec(requests=5000, data=keep_data(tmp_path, CONTENT, files))
    found = read_run_rows("r1", spec, files.joinpath, range(4711, 4713))
    assert (found.run, found.start) == ("r1", 4711)
    assert found.rows == [{"a": "4711", "b": "x4711"}, {"a": "4712", "b": "x4712"}]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (range(3, 3), "are not a range of the 5,000 indices of run r1"),
        (range(4999, 5001), "start 4999 and stop 5001 are not a range"),
        (range(MOST_ROWS + 1), "1,001 rows were requested; one response has at most 1,000"),
    ],
)
def test_what_cannot_be_had_is_refused(tmp_path: Path, wanted: range, said: str) -> None:
    """In one line."""
    files = tmp_path / "files"
    spec = Spec(requests=5000, data=keep_data(tmp_path, CONTENT, files))
    with pytest.raises(UserError, match=said):
        read_run_rows("r1", spec, files.joinpath, wanted)


def test_a_run_without_data_and_one_whose_data_is_gone_say_so(tmp_path: Path) -> None:
    """The data is named as the user named it."""
    spec = Spec(requests=5000, data=keep_data(tmp_path, CONTENT, tmp_path / "files"))
    with pytest.raises(UserError, match="run r1 has no data"):
        read_run_rows("r1", Spec(), tmp_path.joinpath, range(1))
    with pytest.raises(UserError, match=r"data rows\.csv cannot be used: data cannot be read: No such file"):
        read_run_rows("r1", spec, tmp_path.joinpath, range(1))
