import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.outbox_table import fetch_batch
from oku_coordinator.telemetry.history_recorder import (
    MOST_ALIKE,
    WORKER_LINES_PER_S,
    HistoryRecorder,
    merge_events,
)
from oku_core.accounting.histogram import Histogram, coarsen
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.messaging.process_ends import HostEnd, HostEndReason
from oku_core.messaging.progress import Progress, RunProgress
from oku_core.results.event import Event, EventType
from oku_core.results.lines import LineKind
from oku_core.results.sample import build_sample
from oku_core.spec.spec import Spec
from oku_core.summary.tick import Tick


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger whose runs are published, with one that has begun."""
    ledger = open_ledger(path, publishes=True)
    change(ledger, create_run, "r1", Spec(requests=100), 0.0)
    change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    change(ledger, outbox_table.remove, change(ledger, fetch_batch, 100, 10**6, 1.0))
    yield ledger
    ledger.close()


def build_tick(at: float, **changes: Any) -> Tick:
    """A second in which three requests were answered, changed as wanted."""
    histogram = Histogram()
    for value_us in (900, 1000, 5000):
        histogram.record(value_us)
    values: dict[str, Any] = {
        "at": at, "seconds": 1.0, "requests_total": 100, "accounted": 10, "leased": 20, "pending": 70,
        "done": 15, "resent_at_most": 0, "active_s": 3.0, "workers": 1, "in_flight": 4,
        "outcomes": make_counts(3), "requests_sent": 3, "bytes_received": 39, "lag_s": 0.001,
        "times": {Time.LATENCY: histogram.build_latency()},
    }  # fmt: skip
    return Tick(run="r1", state=RunState.RUNNING, sample=build_sample(**values | changes))


def report(recorder: HistoryRecorder, *workers: str, **changes: Any) -> None:
    """A second of these workers."""
    for worker in workers:
        done = RunProgress(outcomes=make_counts(2), lag_s=0.01)
        values: dict[str, Any] = {"runs": {"r1": done}, "cpu_share": 0.5}
        recorder.record(Progress(worker=worker, incarnation="b", at=1.0, **values | changes), ["r1"])


def take(ledger: Ledger, kind: LineKind) -> list[dict[str, Any]]:
    """The lines of a kind, as objects; all others are removed, too."""
    lines = change(ledger, fetch_batch, 10_000, 10**9, 1.0)
    change(ledger, outbox_table.remove, lines)
    return [json.loads(line.text) for line in lines if line.kind == kind]


def test_the_sample_of_a_tick_is_kept(ledger: Ledger) -> None:
    """Its length is the time that the tick covers."""
    recorder = HistoryRecorder(ledger, publishes=False)
    recorder.keep_tick(build_tick(10.0))
    recorder.keep_tick(build_tick(11.5, seconds=1.5))
    samples = read(ledger, fetch_history, "r1").samples
    assert [(sample.at, sample.seconds, sample.done) for sample in samples] == [
        (10.0, 1.0, 15),
        (11.5, 1.5, 15),
    ]
    assert [sample.requests_ended for sample in samples] == [0, 0], "progress is not the account"
    assert [sample.requests_sent for sample in samples] == [0, 0]
    assert read(ledger, outbox_table.measure).lines == 0


def test_the_quantiles_of_a_kept_sample_have_three_digits(ledger: Ledger) -> None:
    """They are those of the whole histogram, though the one that is kept is coarse."""
    HistoryRecorder(ledger, publishes=False).keep_tick(build_tick(1.0))
    (sample,) = read(ledger, fetch_history, "r1").samples
    assert (sample.p50_ms, sample.p99_ms, sample.max_ms) == (1.0, 5.0, 5.0)
    assert sample.histogram(Time.LATENCY) == coarsen(build_tick(1.0).sample.histogram(Time.LATENCY))


def test_a_published_run_has_lines_for_each_second(ledger: Ledger) -> None:
    """There are lines for its latency buckets and its workers; that of the tick itself comes later."""
    recorder = HistoryRecorder(ledger, publishes=True)
    report(recorder, "w1")
    recorder.keep_tick(build_tick(10.0))
    lines = change(ledger, fetch_batch, 1000, 10**6, 1.0)
    counts = {kind: sum(line.kind == kind for line in lines) for kind in LineKind}
    assert (counts[LineKind.TICK], counts[LineKind.LATENCY], counts[LineKind.WORKER]) == (0, 2, 1)
    assert counts[LineKind.COVERAGE] == 0


def test_the_line_of_a_tick_waits_until_its_second_is_settled(ledger: Ledger) -> None:
    """At rest everything is settled."""
    recorder = HistoryRecorder(ledger, publishes=True)
    recorder.keep_tick(build_tick(10.0), settled_to=9.5)
    assert take(ledger, LineKind.TICK) == []
    recorder.keep_tick(build_tick(11.0), settled_to=10.5)
    (line,) = take(ledger, LineKind.TICK)
    assert (line["state"], line["seconds"], line["done"], line["requests_ended"]) == ("running", 1.0, 15, 0)
    recorder.keep_tick(build_tick(12.0), settled_to=10.9)
    recorder.keep_tick(build_tick(12.3, seconds=0.3), is_last=True)
    assert [line["seconds"] for line in take(ledger, LineKind.TICK)] == [1.0, 1.0, 0.3]


def test_the_last_second_has_the_coverage_and_all_workers(ledger: Ledger) -> None:
    """Both say how the run has ended."""
    recorder = HistoryRecorder(ledger, publishes=True)
    names = [f"w{number}" for number in range(WORKER_LINES_PER_S + 50)]
    report(recorder, *names)
    recorder.keep_tick(build_tick(10.5), is_last=True)
    lines = change(ledger, fetch_batch, 10_000, 10**9, 1.0)
    assert sum(line.kind == LineKind.WORKER for line in lines) == len(names)
    assert sum(line.kind == LineKind.COVERAGE for line in lines) == 50


def test_the_line_of_a_worker_is_of_one_run(ledger: Ledger) -> None:
    """It may have finished the requests of another one in the same second."""
    recorder = HistoryRecorder(ledger, publishes=True)
    other = RunProgress(outcomes=make_counts(50), in_flight=9, lag_s=0.7)
    done = RunProgress(outcomes=make_counts(2), in_flight=1, lag_s=0.01)
    report(recorder, "w1", runs={"r0": other, "r1": done})
    report(recorder, "w2", runs={"r0": other})
    recorder.keep_tick(build_tick(10.0))
    lines = take(ledger, LineKind.WORKER)
    assert [(line["requests_ended"], line["in_flight"], line["lag_s"]) for line in lines] == [
        (2, 1, 0.01), (0, 0, 0.0),
    ]  # fmt: skip
    report(recorder, "w1")
    recorder.forget("r1")
    recorder.keep_tick(build_tick(11.0))
    assert take(ledger, LineKind.WORKER) == []


def test_many_workers_take_turns(ledger: Ledger) -> None:
    """A hundred lines come in a second; each line tells of all that its worker has done since the last."""
    recorder = HistoryRecorder(ledger, publishes=True)
    names = [f"w{number:03d}" for number in range(2 * WORKER_LINES_PER_S)]
    seen: list[dict[str, Any]] = []
    for at in range(1, 5):
        report(recorder, *names)
        recorder.keep_tick(build_tick(float(at)))
        lines = take(ledger, LineKind.WORKER)
        assert len(lines) == WORKER_LINES_PER_S
        seen += lines
    assert [line["worker"] for line in seen] == names * 2
    assert {(line["seconds"], line["requests_ended"]) for line in seen[WORKER_LINES_PER_S:]} == {(2.0, 4)}
    assert {line["rate_rps"] for line in seen} == {2.0}


def test_a_worker_that_was_not_heard_has_no_line(ledger: Ledger) -> None:
    """Neither has a worker that is gone."""
    recorder = HistoryRecorder(ledger, publishes=True)
    report(recorder, "w1", "w2")
    recorder.record_worker(EventType.WORKER_LOST, "w2", 1.0, is_active=True)
    recorder.keep_tick(build_tick(1.0))
    assert [line["worker"] for line in take(ledger, LineKind.WORKER)] == ["w1"]
    recorder.keep_tick(build_tick(2.0))
    assert take(ledger, LineKind.WORKER) == []


def test_who_comes_and_goes_is_told_with_the_next_second(ledger: Ledger) -> None:
    """Nothing is kept while no run is active."""
    recorder = HistoryRecorder(ledger, publishes=True)
    recorder.record_worker(EventType.WORKER_JOINED, "w0", 0.5, is_active=False)
    recorder.record_worker(EventType.WORKER_JOINED, "w1", 1.0, is_active=True)
    recorder.record_worker(EventType.WORKER_LOST, "w1", 1.5, is_active=True)
    recorder.keep_tick(build_tick(2.0))
    recorder.keep_tick(build_tick(3.0))
    events = take(ledger, LineKind.EVENT)
    assert [(event["type"], event["worker"]) for event in events] == [
        ("worker_joined", "w1"),
        ("worker_lost", "w1"),
    ]
    assert events[1]["text"] == "worker w1 is dead: it was silent for too long, or was restarted"


def test_a_crowd_is_one_event() -> None:
    """Ten thousand workers that join in one second are not named one by one."""
    crowd = [
        Event(at=1.0, type=EventType.WORKER_JOINED, text="", worker=f"w{number}")
        for number in range(MOST_ALIKE + 1)
    ]
    assert [event.text for event in merge_events(crowd)] == [f"{MOST_ALIKE + 1} workers joined"]


def test_the_end_of_a_process_of_user_code_is_an_event_with_its_reason(ledger: Ledger) -> None:
    """That of many at once has the reason, too, if it is the same."""
    recorder = HistoryRecorder(ledger, publishes=False)
    end = HostEnd(run="r1", number=1, reason=HostEndReason.OUT_OF_MEMORY, text="it was killed", requests=3)
    recorder.record_host_end("w1", end, 1.0)
    recorder.keep_tick(build_tick(2.0))
    event = read(ledger, fetch_history, "r1").events[-1]
    assert (event.type, event.worker, event.reason, event.requests) == (
        EventType.HOST_ENDED, "w1", "out_of_memory", 3,
    )  # fmt: skip
    assert event.text.endswith(": it was killed; running iterations: 3")
    crowd = [event] * (MOST_ALIKE + 1)
    [merged] = merge_events(crowd)
    assert (merged.type, merged.reason, merged.worker) == (EventType.HOST_ENDED, "out_of_memory", None)
    [merged] = merge_events([*crowd, msgspec.structs.replace(event, reason="killed")])
    assert merged.reason is None
    assert merge_events(crowd[1:]) == crowd[1:]
