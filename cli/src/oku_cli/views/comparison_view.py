"""Shows two runs side by side: the verdict first, then what it is made of."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from oku_cli.comparison.comparison import Comparison, Verdict
from oku_cli.comparison.comparison_tables import (
    build_accounts,
    build_differences,
    describe_comparison,
    list_quantile_tables,
)
from oku_cli.comparison.obstacles import SIDES
from oku_cli.terminal.console import BAD, CAUTION, GOOD, MOST_COLUMNS, STRONG
from oku_cli.terminal.layout import Flow
from oku_cli.terminal.table_view import TableView
from oku_cli.views.account_view import build_summary_state
from oku_core.tables.formatting import format_date_minute

_STYLES = {
    Verdict.FASTER: f"bold {GOOD}",
    Verdict.SLOWER: BAD,
    Verdict.MIXED: f"bold {CAUTION}",
    Verdict.NO_DIFFERENCE: STRONG,
    Verdict.NOT_COMPARABLE: f"bold {CAUTION}",
}


def build_comparison(comparison: Comparison) -> RenderableType:
    """Build the whole screen."""
    sections: list[RenderableType] = [*_list_runs(comparison), "", *_build_verdict(comparison), ""]
    sections.append(TableView(build_accounts(comparison)))
    tables = list_quantile_tables(comparison)
    for table in tables:
        title = Text(table.title, style=STRONG)
        sections += ["", title, Padding(TableView(table), (0, 0, 0, 2))]
    if legend := next((table.note for table in tables if table.note), ""):
        sections += ["", legend]
    if comparison.differences:
        sections += ["", TableView(build_differences(comparison))]
    return Constrain(Padding(Group(*sections), (1, 1)), MOST_COLUMNS)


def _list_runs(comparison: Comparison) -> Iterator[RenderableType]:
    for side, summary in zip(SIDES, (comparison.a, comparison.b), strict=True):
        at = summary.started_at
        began = format_date_minute(datetime.fromisoformat(at).timestamp()) if at else "not begun"
        title = " · ".join(filter(None, (summary.name, summary.load)))
        run = Text(f"{side} {summary.run}", style=STRONG)
        yield Flow(run, began, build_summary_state(summary), title, gap=2, indent=2)


def _build_verdict(comparison: Comparison) -> Iterator[RenderableType]:
    yield Text(describe_comparison(comparison), style=_STYLES[comparison.verdict])
    for reason in comparison.reasons:
        yield Padding(Flow(*reason.split(" ")), (0, 0, 0, 2))
