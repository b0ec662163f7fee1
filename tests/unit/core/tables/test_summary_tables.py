import msgspec
import pytest
from tests.kit.runs.summaries import build_summary, list_texts, make_inner, make_phase, make_target

from oku_core.accounting.outcome import Outcome
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.request_summary import FailureSummary
from oku_core.summary.summary import Summary, Unit
from oku_core.tables.summary_tables import UnknownPhaseError, build_figures, list_phase_tables, list_tables
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


def test_user_code_has_its_requests_by_name_and_no_steps() -> None:
    """And why they failed."""
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


def test_the_load_of_a_closed_run_says_what_was_planned() -> None:
    """As in its report."""
    load = parse_spec(Source("spec", {"url": "http://h/", "stages": ["up=2s:0..50", "hold=8s:50"]}))
    summary = build_summary(phases=[make_phase(name="up"), make_phase(name="hold")])
    [phases] = (table for table in list_tables(summary, load) if table.name == "phases")
    assert "planned" in [column.key for column in phases.columns]
    assert "not sent" not in list_tables(summary, load)[1].note


def test_a_phase_has_its_targets() -> None:
    """One that a run does not have is named."""
    summary = build_summary(phases=[make_phase(name="up", targets=[make_target()]), make_phase(name="end")])
    assert [table.title for table in list_phase_tables(summary, "up")] == ["Phase up"]
    assert list_phase_tables(summary, "end") == []
    with pytest.raises(UnknownPhaseError, match="phase: x is not in run 6f2c1a, which has up, end"):
        list_phase_tables(summary, "x")
