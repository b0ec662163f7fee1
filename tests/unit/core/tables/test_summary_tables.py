import msgspec
import pytest
from tests.kit.runs.summaries import (
    build_summary,
    list_texts,
    make_inner,
    make_outcomes,
    make_phase,
    make_target,
)

from oku_core.accounting.outcome import Outcome
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.request_summary import FailureSummary
from oku_core.summary.summary import ProcessSummary, Summary, Unit, WorkerSummary
from oku_core.tables.summary_tables import (
    UnknownPhaseError,
    build_figures,
    describe_processes,
    list_phase_tables,
    list_tables,
    list_worker_tables,
)
from oku_core.tables.table import Role, Table
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict


def list_names(summary: Summary) -> list[str]:
    """The names of the tables of a run."""
    return [table.name for table in list_tables(summary)]


def test_a_run_has_the_tables_that_have_rows() -> None:
    """What a run does not have is left out."""
    assert list_names(build_summary()) == ["figures", "outcomes", "statuses", "times", "workers"]
    full = build_summary(targets=[make_target()], phases=[make_phase()])
    assert set(list_names(full)) >= {"phases", "targets", "target_steps"}
    # User code has its requests by name and no steps. And why they failed.
    failure = FailureSummary(outcome=Outcome.TIMEOUT, reason="slow", requests=1)
    summary = build_summary(unit=Unit.ITERATION, statuses={}, inner_requests=[make_inner(failures=[failure])])
    assert list_names(summary) == [
        "figures", "outcomes", "times", "names", "name_failures", "workers",
    ]  # fmt: skip


def test_a_table_keeps_its_values_as_json() -> None:
    """A page can sort them; each row has a cell for each column, and only the first column names rows."""
    tables = list_tables(build_summary(targets=[make_target()], phases=[make_phase()]))
    assert msgspec.json.decode(msgspec.json.encode(tables), type=list[Table]) == tables
    for table in tables:
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
        assert [column.role is Role.NAME for column in table.columns] == [True] + [False] * (
            len(table.columns) - 1
        )
    [targets] = (table for table in tables if table.name == "targets")
    values = {
        column.key: cell.value for column, cell in zip(targets.columns, targets.rows[0].cells, strict=True)
    }
    assert (values["requests"], values["ok"], values["rate"], values["latency_p99"]) == (1000, 1, 500, 20)


def test_every_number_has_a_unit() -> None:
    """Of its column or, where that has several, of its cell; what is no number has no unit."""
    failure = FailureSummary(outcome=Outcome.TIMEOUT, reason="slow", requests=1, first_index=1500)
    threshold = ThresholdSummary(
        expression="ok > 99%", verdict=ThresholdVerdict.PASSED, unit=FigureUnit.SHARE, limit=0.99, value=1.0
    )
    full = build_summary(
        targets=[make_target()], phases=[make_phase()], failures=[failure], thresholds=[threshold],
        planned_rps=10.0,
    )  # fmt: skip
    tables = list_tables(full)
    assert {table.name for table in tables} >= {"figures", "thresholds", "failures", "phases", "workers"}
    for table in tables:
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                quantities = [each for each in (column.quantity, cell.quantity) if each]
                assert len(quantities) == 1 or cell.value is None, f"{table.name}: {column.key}: {cell}"


def test_what_a_run_has_done_in_all_comes_first() -> None:
    """A run that has not begun has no throughput."""
    summary = build_summary(unit=Unit.ITERATION, planned_rps=10.0, resent_at_most=1200)
    assert list_texts(build_figures(summary)) == [
        ["figure", "value"],
        ["accounted", "1,000 of 1,000 iterations"],
        ["throughput", "16/s sent, 0/s completed over 61.2 s"],
        ["planned", "10/s"],
        ["received", "13.0 kB"],
        ["resent", "at most 1,200"],
    ]
    figures = build_figures(build_summary(active_s=0.0))
    assert [row.cells[0].text for row in figures.rows] == ["accounted", "received", "resent"]


def test_a_phase_has_its_targets_and_its_plan() -> None:
    """As in its report."""
    load = parse_spec(Source("spec", {"url": "http://h/", "stages": ["up=2s:0..50", "hold=8s:50"]}))
    summary = build_summary(phases=[make_phase(name="up"), make_phase(name="hold")])
    [phases] = (table for table in list_tables(summary, load) if table.name == "phases")
    assert "planned" in [column.key for column in phases.columns]
    assert "not sent" not in list_tables(summary, load)[1].note
    # A phase has its targets. One that a run does not have is named.
    summary = build_summary(phases=[make_phase(name="up", targets=[make_target()]), make_phase(name="end")])
    assert [table.title for table in list_phase_tables(summary, "up")] == ["Phase up"]
    assert list_phase_tables(summary, "end") == []
    with pytest.raises(UnknownPhaseError, match="phase: x is not in run 6f2c1a, which has up, end"):
        list_phase_tables(summary, "x")


def make_workers(count: int, lost: int = 0) -> list[WorkerSummary]:
    """Make this many workers, the first of which are lost."""
    return [
        WorkerSummary(name=f"w{n}", requests=1000 * n, cpu_s=10.0 * n, peak_rss_mb=60.0 + n, lost=n <= lost)
        for n in range(1, count + 1)
    ]


def test_processes_have_a_row_each_or_a_spread() -> None:
    """It has requests, rate, processor time and memory, and says if the worker was lost."""
    [table] = list_worker_tables(build_summary(workers=make_workers(2, lost=1), active_s=10.0), 8)
    assert table.title == "2 workers, 1 lost"
    assert list_texts(table) == [
        ["worker", "requests", "rate", "CPU", "peak memory", ""],
        ["w1", "1,000", "100/s", "10.0 s", "61 MB", "lost"],
        ["w2", "2,000", "200/s", "20.0 s", "62 MB", ""],
    ]
    # Of many workers the spread is shown.
    spread, workers = list_worker_tables(build_summary(workers=make_workers(9)), 8)
    assert list_texts(spread) == [
        ["each column by itself", "requests", "CPU", "peak memory"],
        ["min", "1,000", "10.0 s", "61 MB"],
        ["median", "5,000", "50.0 s", "65 MB"],
        ["max", "9,000", "90.0 s", "69 MB"],
    ]
    assert (spread.title, workers.title, len(workers.rows)) == ("9 workers, none lost", "All workers", 9)
    # The tables stay short however many are lost. The first lost ones have a row, the others are counted.
    summary = build_summary(workers=make_workers(1000, lost=500))
    _, lost = list_worker_tables(summary, 8, 3)
    assert (lost.title, len(lost.rows), lost.left_out) == ("Lost workers", 3, 497)
    assert len(list_worker_tables(build_summary(workers=make_workers(1000)), 8)) == 1
    # A worker has no rate where requests were not sent. What a worker accounted for is not what it sent.
    outcomes = make_outcomes(ok=600, not_sent=400)
    [table] = list_worker_tables(build_summary(workers=make_workers(1), outcomes=outcomes), 8)
    assert list_texts(table)[1][2] == "-"
    # Other processes are named with their memory. A run without workers has no tables.
    summary = build_summary(workers=[], processes=[ProcessSummary(name="broker", peak_mb=3.4)])
    assert describe_processes(summary) == "Peak memory of the other processes: broker 3 MB."
    assert list_worker_tables(summary, 8) == []
    assert not describe_processes(build_summary())
