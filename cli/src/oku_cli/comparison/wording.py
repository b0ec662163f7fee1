"""Says in words what a comparison found."""

from collections.abc import Sequence

from oku_cli.comparison.comparison import Comparison, Verdict
from oku_core.statistics.change import ChangeVerdict, QuantileChange
from oku_core.tables.formatting import format_change


def describe_verdict(comparison: Comparison) -> str:
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
        names.setdefault(each.distribution.replace("_", " "), []).append(each.quantile.replace("_", "."))
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
