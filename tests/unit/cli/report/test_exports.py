import csv
import io
from collections.abc import Callable

import msgspec
from tests.unit.cli.report.conftest import make_sample

from oku_cli.report.exports import CSV_COLUMNS, build_csv, build_hgrm_text, mask_head
from oku_cli.report.history_reader import RunHistory
from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import RunState
from oku_core.results.event import Event, EventType
from oku_core.tables.time_tables import LATENCY

MakeHistory = Callable[..., RunHistory]


def test_json_has_no_secrets(make_history: MakeHistory) -> None:
    """Only the first line can contain any, and its other fields stay as they were."""
    history = make_history()
    spec = {"header": ["Authorization: secret"]}
    head = {"at": 1.0, "summary": history.summary, "spec": spec, "extent": history.extent}
    masked = msgspec.json.decode(mask_head(msgspec.json.encode(head)[:-1]) + b"}")
    assert masked["spec"] == {"header": ["Authorization: ***"]}
    assert masked["summary"] == msgspec.to_builtins(history.summary)


def test_csv_has_a_line_for_each_sample(make_history: MakeHistory) -> None:
    """Columns have the names from docs/metrics.md, and unknown values are empty."""
    history = make_history(samples=[make_sample(1, [1000, 2000]), make_sample(2, [])])
    first, second = csv.DictReader(io.StringIO(build_csv(history)))
    assert tuple(first) == CSV_COLUMNS
    assert (first["at"], first["requests_total"]) == ("1769965513.0", "1000")
    assert (first["requests_ended"], first["ok"], first["rate_rps"]) == ("2", "2", "2.0")
    assert (first["p50_ms"], second["p50_ms"], second["requests_ended"]) == ("1.0", "", "0")


def test_csv_has_the_state_of_the_run_in_each_line(make_history: MakeHistory) -> None:
    """It is the last state entered before the sample ended, or empty if none was recorded."""
    samples = [make_sample(second) for second in range(1, 6)]
    events = [
        Event(at=samples[1].at - 0.5, type=EventType.STATE, text="", state=RunState.RUNNING),
        Event(at=samples[2].at - 0.5, type=EventType.WORKER_JOINED, text=""),
        Event(at=samples[4].at - 0.1, type=EventType.STATE, text="", state=RunState.COMPLETED),
    ]
    rows = csv.DictReader(io.StringIO(build_csv(make_history(samples=samples, events=events))))
    assert [row["state"] for row in rows] == ["", "running", "running", "running", "completed"]


def test_csv_names_every_outcome() -> None:
    """Columns have the order of the outcomes."""
    assert [name for name in CSV_COLUMNS if name in set(OUTCOMES)] == list(OUTCOMES)


def test_hgrm_covers_the_whole_run(make_history: MakeHistory) -> None:
    """Its latencies are in ms."""
    text = build_hgrm_text(make_history())
    assert "Total count    =         1000]" in text
    assert text.splitlines()[2].split()[0] == "1.000"


def test_latencies_have_their_exact_minimum_and_maximum(make_history: MakeHistory) -> None:
    """The histogram alone does not know them."""
    latency = LATENCY.decode(make_history().summary)
    assert (latency.min_us, latency.max_us, latency.total) == (1000, 10_990, 1000)
