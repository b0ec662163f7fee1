"""Shows two runs side by side: the verdict first, then what it is made of."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from oku_cli.comparison.comparison import ComparedQuantile, Comparison, Verdict
from oku_cli.comparison.obstacles import SIDES
from oku_cli.comparison.spec_differences import describe_value
from oku_cli.comparison.wording import describe_verdict, format_size, is_none
from oku_cli.terminal.layout import AlignedTable, Flow
from oku_cli.terminal.palette import BAD, CAUTION, GOOD, MOST_COLUMNS, STRONG
from oku_cli.views.account_view import build_summary_state
from oku_core.accounting.outcome import Outcome
from oku_core.results.summary import Summary, Unit
from oku_core.statistics.change import ChangeVerdict
from oku_core.tables.formatting import (
    choose_digits,
    format_change,
    format_count,
    format_date_minute,
    format_interval,
    format_latency,
    format_outcome,
    format_rate,
    format_share,
    in_units,
)

_STYLES = {
    Verdict.FASTER: f"bold {GOOD}",
    Verdict.SLOWER: BAD,
    Verdict.MIXED: f"bold {CAUTION}",
    Verdict.NO_DIFFERENCE: STRONG,
    Verdict.NOT_COMPARABLE: f"bold {CAUTION}",
}
_LEGEND = "none (x %): no difference shown; one of x % would have been seen in four of five cases"
_CHANGE_STYLES = {
    ChangeVerdict.FASTER: GOOD,
    ChangeVerdict.SLOWER: BAD,
    ChangeVerdict.NO_DIFFERENCE: "",
}


def build_comparison(comparison: Comparison) -> RenderableType:
    """Build the whole screen."""
    sections: list[RenderableType] = [_build_runs(comparison), "", *_build_verdict(comparison), ""]
    sections.append(_build_counts(comparison.a, comparison.b))
    for name in dict.fromkeys(each.distribution for each in comparison.quantiles):
        rows = [each for each in comparison.quantiles if each.distribution == name]
        sections += ["", _build_quantiles(name.replace("_", " "), rows, is_judged=comparison.is_judged)]
    if any(each.change and is_none(each.change) for each in comparison.quantiles):
        sections += ["", _LEGEND]
    if comparison.differences:
        sections += ["", _build_differences(comparison)]
    return Constrain(Padding(Group(*sections), (1, 1)), MOST_COLUMNS)


def _build_runs(comparison: Comparison) -> RenderableType:
    table = AlignedTable(("left", "left", "left", "left"), gap=2)
    for side, summary in zip(SIDES, (comparison.a, comparison.b), strict=True):
        at = summary.started_at
        began = format_date_minute(datetime.fromisoformat(at).timestamp()) if at else "not begun"
        title = " · ".join(filter(None, (summary.name, summary.load)))
        run = Text(f"{side} {summary.run}", style=STRONG)
        table.add_row(run, began, build_summary_state(summary), title)
    return table


def _build_verdict(comparison: Comparison) -> Iterator[RenderableType]:
    yield Text(describe_verdict(comparison), style=_STYLES[comparison.verdict])
    for reason in comparison.reasons:
        yield Padding(Flow(*reason.split(" ")), (0, 0, 0, 2))


def name_accounted(summary: Summary) -> str:
    """How the row of what is accounted is called: what is counted is said where it is not requests."""
    return "accounted" if summary.unit is Unit.REQUEST else f"accounted {in_units('requests', summary.unit)}"


def _build_counts(a: Summary, b: Summary) -> RenderableType:
    table = AlignedTable(("left", "right", "right", "right", "right", "right"), gap=2)
    table.add_row("", Text("A", style=STRONG), "", Text("B", style=STRONG), "", "change")
    table.add_row(name_accounted(a), format_count(a.accounted), "", format_count(b.accounted), "", "")
    for outcome in Outcome:
        counts = [getattr(each.outcomes, outcome) for each in (a, b)]
        if any(counts) or outcome is Outcome.OK:
            shares = [format_share(count, each.accounted) for count, each in zip(counts, (a, b), strict=True)]
            style = "" if outcome is Outcome.OK else BAD
            cells = [format_count(counts[0]), shares[0], format_count(counts[1]), shares[1]]
            table.add_row(Text(format_outcome(outcome)), *(Text(cell, style=style) for cell in cells), "")
    change = format_change(b.throughput_rps / a.throughput_rps - 1 if a.throughput_rps else None)
    rates = [format_rate(each.throughput_rps) for each in (a, b)]
    table.add_row("throughput", rates[0], "", rates[1], "", change)
    return table


def _build_quantiles(name: str, rows: Sequence[ComparedQuantile], *, is_judged: bool) -> RenderableType:
    digits = choose_digits([row.a_ms for row in rows] + [row.b_ms for row in rows])
    table = AlignedTable(("left", "right", "left", "right", "left", "right", "left"), gap=2)
    verdict = "difference" if is_judged else ""
    table.add_row("", Text("A", style=STRONG), "", Text("B", style=STRONG), "", "change", verdict)
    for row in rows:
        cells: list[Text | str] = [row.quantile.replace("_", ".")]
        for value_ms, interval_ms in ((row.a_ms, row.a_interval_ms), (row.b_ms, row.b_interval_ms)):
            cells += [Text(format_latency(value_ms, digits), style=STRONG), format_interval(interval_ms)]
        table.add_row(*cells, *_list_verdict(row, is_judged=is_judged))
    return Group(Text(name, style=STRONG), Padding(table, (0, 0, 0, 2)))


def _list_verdict(row: ComparedQuantile, *, is_judged: bool) -> tuple[Text | str, ...]:
    """The change of a quantile, and what follows: `slower`, or `none (4.5 %)`."""
    change, size = row.change, format_change(row.plain_change)
    if change is None:
        return size, "too few" if is_judged else ""
    style = _CHANGE_STYLES[change.verdict]
    what = f"none ({format_size(change.visible)})" if is_none(change) else change.verdict
    return Text(size, style=style), Text(what, style=style)


def _build_differences(comparison: Comparison) -> RenderableType:
    table = AlignedTable(("left", "left", "left"), gap=2)
    table.add_row("spec", Text("A", style=STRONG), Text("B", style=STRONG))
    for each in comparison.differences:
        a, b = describe_value(each.a), describe_value(each.b)
        table.add_row(each.key, a, b if a != b else f"{b} (not the same)")
    return table
