"""Builds the tables of a comparison, and its verdict as a sentence."""

from collections.abc import Iterator, Sequence

from oku_cli.comparison.comparison import ComparedQuantile, Comparison, Verdict
from oku_cli.comparison.obstacles import SIDES, describe_value
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import Outcome
from oku_core.statistics.change import ChangeVerdict, QuantileChange
from oku_core.summary.judgement import Judgement
from oku_core.summary.summary import Summary, Unit
from oku_core.tables.formatting import (
    choose_digits,
    format_change,
    format_interval,
    format_latency,
    format_outcome,
    in_units,
)
from oku_core.tables.table import (
    Cell,
    Column,
    Quantity,
    Rank,
    Role,
    Table,
    Value,
    build_measured,
    build_table,
)
from oku_core.tables.time_tables import name_figure

_LEGEND = "none (x %): no difference shown; one of x % would have been seen in four of five cases"
_JUDGEMENTS = {
    ChangeVerdict.FASTER: Judgement.GOOD,
    ChangeVerdict.SLOWER: Judgement.BAD,
    ChangeVerdict.NO_DIFFERENCE: Judgement.NEUTRAL,
}


def build_accounts(comparison: Comparison) -> Table:
    """Build the table of outcomes and rates of both runs."""
    columns = [Column(key="figure", head="", role=Role.NAME)]
    for side in SIDES:
        columns += [
            Column(key=side.lower(), head=side, quantity=Quantity.COUNT),
            Column(key=f"{side.lower()}_share", head="share", quantity=Quantity.SHARE),
        ]
    columns.append(Column(key="change", head="change", quantity=Quantity.SHARE))
    return build_table("accounts", "Account", columns, _iter_accounts(comparison.a, comparison.b))


def list_quantile_tables(comparison: Comparison) -> list[Table]:
    """List a table of compared quantiles for each distribution, with its name as the title."""
    names = dict.fromkeys(each.distribution for each in comparison.quantiles)
    return [_build_quantiles(comparison, name) for name in names]


def build_differences(comparison: Comparison) -> Table:
    """Build the table of the keys of the specs whose values differ."""
    columns = [
        Column(key="key", head="what differs", role=Role.NAME),
        *(Column(key=side.lower(), head=side, role=Role.TEXT) for side in SIDES),
    ]
    rows = ((each.key, *_describe_values(each.a, each.b)) for each in comparison.differences)
    return build_table("differences", "Spec", columns, rows)


def _iter_accounts(a: Summary, b: Summary) -> Iterator[list[Value]]:
    # Iterations are named; requests need no word.
    counted = "" if a.unit is Unit.REQUEST else f" {in_units('requests', a.unit)}"
    yield [f"accounted{counted}", a.accounted, Cell(), b.accounted, Cell(), Cell()]
    for outcome in Outcome:
        counts = [getattr(each.outcomes, outcome) for each in (a, b)]
        if any(counts) or outcome is Outcome.OK:
            shares = [
                count / each.accounted if each.accounted else 0.0
                for count, each in zip(counts, (a, b), strict=True)
            ]
            name = Cell(text=format_outcome(outcome), judgement=_judge_outcome(outcome))
            yield [name, counts[0], shares[0], counts[1], shares[1], Cell()]
    change = b.throughput_rps / a.throughput_rps - 1 if a.throughput_rps else None
    rates = [build_measured(Quantity.RATE, each.throughput_rps) for each in (a, b)]
    yield ["throughput", rates[0], Cell(), rates[1], Cell(), _build_change(change)]


def _judge_outcome(outcome: Outcome) -> Judgement:
    return Judgement.NEUTRAL if outcome is Outcome.OK else Judgement.BAD


def _build_quantiles(comparison: Comparison, name: str) -> Table:
    quantiles = [each for each in comparison.quantiles if each.distribution == name]
    digits = choose_digits([each.a_ms for each in quantiles] + [each.b_ms for each in quantiles])
    columns = [Column(key="quantile", head="", role=Role.NAME)]
    for side in SIDES:
        columns += [
            Column(key=side.lower(), head=side, quantity=Quantity.LATENCY),
            Column(key=f"{side.lower()}_interval", head="", role=Role.TEXT),
        ]
    columns += [
        Column(key="change", head="change", quantity=Quantity.SHARE),
        Column(key="change_interval", head="", role=Role.TEXT, rank=Rank.DETAIL),
        Column(key="difference", head="difference" if comparison.is_judged else "", role=Role.TEXT),
    ]
    rows = (_list_quantile(each, digits, is_judged=comparison.is_judged) for each in quantiles)
    has_none = any(each.change and is_none(each.change) for each in quantiles)
    return build_table(name, Time(name).label, columns, rows, _LEGEND if has_none else "")


def _list_quantile(each: ComparedQuantile, digits: int, *, is_judged: bool) -> Sequence[Value]:
    change = each.change
    bounds, difference = "", "too few" if is_judged else ""
    judgement = Judgement.NEUTRAL
    if change is not None:
        bounds = f"({format_change(change.low)} to {format_change(change.high)})"
        difference = f"none ({format_size(change.visible)})" if is_none(change) else str(change.verdict)
        judgement = _JUDGEMENTS[change.verdict]
    return [
        name_figure(each.quantile),
        Cell(text=format_latency(each.a_ms, digits), value=each.a_ms),
        format_interval(each.a_interval_ms, digits),
        Cell(text=format_latency(each.b_ms, digits), value=each.b_ms),
        format_interval(each.b_interval_ms, digits),
        _build_change(each.plain_change, judgement),
        bounds,
        Cell(text=difference, judgement=judgement),
    ]


def _build_change(change: float | None, judgement: Judgement = Judgement.NEUTRAL) -> Cell:
    return Cell(text=format_change(change), value=change, judgement=judgement)


def _describe_values(a: object, b: object) -> tuple[str, str]:
    """Describe both values; mark masked values that differ but look the same."""
    first, second = describe_value(a), describe_value(b)
    return first, second if second != first else f"{second} (not the same)"


def describe_comparison(comparison: Comparison) -> str:
    """The verdict as a sentence."""
    match comparison.verdict:
        case Verdict.FASTER | Verdict.SLOWER as verdict:
            return f"B is {verdict} than A: {_list_names(comparison, ChangeVerdict(verdict))}"
        case Verdict.MIXED:
            faster, slower = (
                _list_names(comparison, each) for each in (ChangeVerdict.FASTER, ChangeVerdict.SLOWER)
            )
            return f"B is faster than A at {faster}, and slower at {slower}"
        case Verdict.NO_DIFFERENCE:
            return f"no difference shown{_describe_visible(comparison)}"
        case Verdict.NOT_COMPARABLE:
            return "A and B are not judged by each other"


def is_none(change: QuantileChange) -> bool:
    """Whether no difference is shown."""
    return change.verdict is ChangeVerdict.NO_DIFFERENCE


def format_size(share: float) -> str:
    """Format the size of a change without a sign: `4.5 %`."""
    return format_change(share).removeprefix("+")


def _list_names(comparison: Comparison, verdict: ChangeVerdict) -> str:
    """`p50 and p99 of latency, p99 of response time`."""
    names: dict[str, list[str]] = {}
    for each in comparison.list_quantiles(verdict):
        names.setdefault(Time(each.distribution).label, []).append(name_figure(each.quantile))
    return ", ".join(f"{_join(quantiles)} of {name}" for name, quantiles in names.items())


def _join(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _describe_visible(comparison: Comparison) -> str:
    """How much would have been seen of what a user waits for: response times, if there are any."""
    last = comparison.quantiles[-1].distribution if comparison.quantiles else ""
    visible = {
        each.quantile: format_size(each.change.visible)
        for each in comparison.quantiles
        if each.change and each.distribution == last
    }
    texts = [f"{visible[name]} at {name}" for name in ("p50", "p99") if name in visible]
    return f" (would have seen {_join(texts)})" if texts else ""
