"""Builds the table of thresholds: what became of each, and how far it is from being lost."""

from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import Html, element
from oku_cli.terminal.threshold_text import describe_standing, describe_verdict, format_value
from oku_core.results.summary import Summary
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

_CLASSES = {
    ThresholdVerdict.PASSED: "good",
    ThresholdVerdict.FAILED: "bad",
    ThresholdVerdict.UNDECIDED: "caution",
}
_NOTE = (
    "A time counts as slower than a limit if it lies in the same bucket, which is 0.1 % wide. "
    "Times over some seconds in a row are judged by what was seen live."
)


def build_thresholds(summary: Summary) -> Html | None:
    """Build the section on thresholds; None if the run has none."""
    if not summary.thresholds:
        return None
    heads = [
        element("th", head, scope="col", class_="number" if head == "limit" else None)
        for head in ("threshold", "verdict", "limit", "how it stands")
    ]
    table = element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", *map(_build_row, summary.thresholds)),
    )
    return build_section(
        "Thresholds",
        element("div", table, class_="scroll"),
        element("p", _NOTE, class_="note"),
        id_="thresholds",
    )


def _build_row(threshold: ThresholdSummary) -> Html:
    return element(
        "tr",
        element("th", element("code", threshold.expression), scope="row"),
        element("td", describe_verdict(threshold), class_=_CLASSES[threshold.verdict]),
        element("td", format_value(threshold.limit, threshold.unit), class_="number"),
        element("td", describe_standing(threshold)),
    )
