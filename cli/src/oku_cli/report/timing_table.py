"""Builds the table of how the time of requests is split, of the whole run and of each target."""

from collections.abc import Iterator

from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import Html, element
from oku_cli.views.timing_view import STEP_NAMES, format_step
from oku_core.results.summary import Summary, TargetSummary
from oku_core.tables.formatting import format_count

_FIGURES = ("min", "mean", "p50", "p90", "p99", "max")
_MEANINGS = {
    "connect": "TCP, of requests for which a connection was made",
    "tls": "handshake on these connections",
    "first_byte": "sent to first byte of the answer",
    "transfer": "first byte to end of the answer",
}


def build_timing(summary: Summary) -> Html | None:
    """Build the section on how time is split; None if no request has connected or was answered."""
    if not any(step.requests for _, step in summary.timing_ms.list_steps()):
        return None
    heads = [element("th", "", scope="col")]
    heads += [element("th", figure, scope="col", class_="number") for figure in ("requests", *_FIGURES)]
    table = element(
        "table", element("thead", element("tr", *heads)), element("tbody", *_build_rows(summary)),
        class_="phase-rows",
    )  # fmt: skip
    parts = [element("div", table, class_="scroll")]
    if summary.targets:
        targets = _build_targets(summary.targets)
        parts.append(element("details", element("summary", "99th percentiles by target"), targets))
    return build_section("Connections and transfer", *parts, id_="timing")


def _build_rows(summary: Summary) -> Iterator[Html]:
    for name, step in summary.timing_ms.list_steps():
        if step.requests:
            head = element("th", STEP_NAMES[name], element("small", _MEANINGS[name]), scope="row")
            times = (format_step(getattr(step, figure)) for figure in _FIGURES)
            cells = (element("td", text, class_="number") for text in (format_count(step.requests), *times))
            yield element("tr", head, *cells)


def _build_targets(targets: list[TargetSummary]) -> Html:
    heads = [element("th", "target", scope="col")]
    heads += [element("th", name, scope="col", class_="number") for name in STEP_NAMES.values()]
    rows = [
        element(
            "tr",
            element("th", target.name, scope="row"),
            *(
                element("td", format_step(step.p99), class_="number")
                for _, step in target.timing_ms.list_steps()
            ),
        )
        for target in targets
    ]
    table = element(
        "table", element("thead", element("tr", *heads)), element("tbody", *rows), class_="phase-rows"
    )
    return element("div", table, class_="scroll")
