import msgspec
import pytest
from tests.kit.runs.summaries import build_summary, make_inner, make_phase, make_target

from oku_core.accounting.outcome import Outcome
from oku_core.errors import UserError
from oku_core.results.request_summary import FailureSummary
from oku_core.results.summary import Summary, Unit
from oku_core.tables.summary_tables import list_phase_tables, list_tables
from oku_core.tables.table import Role, Table


def list_names(summary: Summary) -> list[str]:
    """The names of the tables of a run."""
    return [table.name for table in list_tables(summary)]


def test_a_run_has_the_tables_that_have_rows() -> None:
    """What a run does not have is left out."""
    assert list_names(build_summary()) == ["outcomes", "statuses", "times", "workers"]
    full = build_summary(targets=[make_target()], phases=[make_phase()])
    assert set(list_names(full)) >= {"phases", "targets", "target_steps"}


def test_user_code_has_its_requests_by_name_and_no_steps() -> None:
    """And why they failed."""
    failure = FailureSummary(outcome=Outcome.TIMEOUT, reason="slow", requests=1)
    summary = build_summary(unit=Unit.ITERATION, statuses={}, inner_requests=[make_inner(failures=[failure])])
    assert list_names(summary) == ["outcomes", "times", "names", "name_failures", "workers"]


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


def test_a_phase_has_its_targets() -> None:
    """One that a run does not have is named."""
    summary = build_summary(phases=[make_phase(name="up", targets=[make_target()]), make_phase(name="end")])
    assert [table.title for table in list_phase_tables(summary, "up")] == ["Phase up"]
    assert list_phase_tables(summary, "end") == []
    with pytest.raises(UserError, match="phase: x is not in run 6f2c1a, which has up, end"):
        list_phase_tables(summary, "x")
