"""Builds the table of failures: why requests are not ok, and of each reason the first and last index."""

from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import Html, element
from oku_core.results.summary import CompletesSummary, FailureSummary, Summary, Unit
from oku_core.tables.formatting import format_count, format_outcome, format_share, in_units

_NUMBERS = frozenset({"requests", "share", "first index", "last index"})


def build_failures(summary: Summary) -> Html | None:
    """Build the section on failures; None if all is ok and the run completes no other."""
    parts = []
    if summary.completes is not None:
        parts.append(_build_completes(summary.completes, summary.unit))
    if summary.failures:
        parts.append(_build_table(summary))
        parts += [_build_traceback(failure) for failure in summary.failures if failure.traceback]
    return build_section("Failures", *parts, id_="failures") if parts else None


def _build_table(summary: Summary) -> Html:
    failures = summary.failures
    has_targets = any(failure.target for failure in failures)
    heads = [*(["target"] if has_targets else []), "outcome", "reason", "requests", "share"]
    heads += ["first index", "last index"]
    if has_samples := any(failure.sample for failure in failures):
        heads.append("request of the first")
    rows = [
        _build_row(failure, summary.accounted, has_targets=has_targets, has_samples=has_samples)
        for failure in failures
    ]
    head = element(
        "tr",
        *(
            element(
                "th",
                in_units(name, summary.unit) if name in _NUMBERS else name,
                scope="col",
                class_="number" if name in _NUMBERS else None,
            )
            for name in heads
        ),
    )
    return element("table", element("thead", head), element("tbody", *rows))


def _build_row(failure: FailureSummary, accounted: int, *, has_targets: bool, has_samples: bool) -> Html:
    numbers = (
        format_count(failure.requests),
        format_share(failure.requests, accounted),
        *("" if index is None else str(index) for index in (failure.first_index, failure.last_index)),
    )
    return element(
        "tr",
        *([element("td", failure.target)] if has_targets else []),
        element("td", format_outcome(failure.outcome)),
        element("td", failure.reason),
        *(element("td", number, class_="number") for number in numbers),
        *([element("td", failure.sample)] if has_samples else []),
    )


def _build_traceback(failure: FailureSummary) -> Html:
    return element(
        "details",
        element("summary", f"Traceback: {failure.reason}"),
        element("pre", element("code", failure.traceback), tabindex="0"),
    )


def _build_completes(completes: CompletesSummary, unit: Unit) -> Html:
    share = format_share(completes.ok_with_retries, completes.requests)
    now, requests = format_count(completes.ok_with_retries), format_count(completes.requests)
    text = (
        f"This run sends what failed in run {completes.retried} again. With it, {now} of the {requests}"
        f" {in_units('requests', unit)} of run {completes.run} are ok ({share});"
        f" {format_count(completes.ok)} were before."
    )
    if completes.unlisted:
        text += (
            f" {format_count(completes.unlisted)} that failed are left out: the ledger has not listed them."
        )
    return element("p", text, class_="note")
