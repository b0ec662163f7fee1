"""Builds the head of a report: which run it is, then its account, its validity flags and its metrics."""

from collections.abc import Iterator
from datetime import UTC, datetime

from oku_cli.formatting import (
    choose_digits,
    format_count,
    format_latency,
    format_outcome,
    format_progress,
    format_rate,
    format_share,
)
from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import Html, element
from oku_cli.views.account_view import build_served, describe_missing
from oku_cli.views.validity_view import describe_extent
from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import REST_STATES
from oku_core.results.summary import Flag, Summary, Validity
from oku_core.spec.values.quantity import format_bytes, format_duration


def build_head(summary: Summary) -> Html:
    """Build the header with the name, id, state, engine and times of the run."""
    facts = [f"run {summary.run}"] if summary.name else []
    facts.append(f"engine {summary.engine}")
    if summary.started_at:
        facts.append(f"started {format_utc(summary.started_at)}")
    if summary.ended_at:
        facts.append(f"ended {format_utc(summary.ended_at)}")
    if summary.active_s:
        facts.append(f"active for {format_duration(summary.active_s)}")
    return element(
        "header",
        element(
            "h1",
            summary.name or f"run {summary.run}",
            " ",
            element("span", summary.state, class_=f"state {summary.state}"),
        ),
        element("p", " · ".join(facts), class_="facts"),
        *([element("p", summary.reason, class_="reason")] if summary.reason else []),
    )


def build_account(summary: Summary) -> Html:
    """Build the account: how much is accounted, whether that balances, the validity flags and the metrics."""
    missing = summary.requests - summary.accounted
    extent = [
        element("strong", format_count(summary.accounted)),
        f" of {format_count(summary.requests)} requests accounted",
    ]
    if missing:
        progress = format_progress(summary.accounted, summary.requests)
        extent.append(f" ({progress}; {format_count(missing)} {describe_missing(summary.state)})")
    return build_section(
        "Account",
        element("p", *extent, class_="extent"),
        _build_meter(summary),
        element("dl", *(part for fact in _list_context(summary) for part in fact), class_="account"),
        build_flags(summary.validity),
        element("dl", *(_build_metric(*metric) for metric in _list_metrics(summary)), class_="metrics"),
        id_="account",
    )


def build_flags(flags: list[Validity]) -> Html:
    """Build the list of validity flags; without any, a sentence says so."""
    if not flags:
        return element(
            "p", "No flags: nothing is known that would make these numbers misleading.", class_="fine"
        )
    return element("ul", *(_build_flag(flag) for flag in flags), class_="flags")


def build_outcomes(summary: Summary) -> Html:
    """Build the tables of outcomes and of statuses, with the share of each."""
    outcomes = [
        (format_outcome(outcome), getattr(summary.outcomes, outcome), outcome.value) for outcome in Outcome
    ]
    shown = [row for row in outcomes if row[1] or row[2] == Outcome.OK]
    hidden = [name for name, count, class_ in outcomes if not count and class_ != Outcome.OK]
    none = f"Did not occur: {', '.join(hidden)}." if hidden else ""
    statuses = [(status, count, "status") for status, count in sorted(summary.statuses.items())]
    return build_section(
        "Outcomes",
        element(
            "div",
            _build_bars("Requests by outcome", "outcome", shown, summary.accounted, none),
            _build_bars("Responses by status", "status", statuses, sum(summary.statuses.values()), ""),
            class_="pair",
        ),
        id_="outcomes",
    )


def format_utc(iso: str) -> str:
    """Format a time of a summary to the second: `2026-02-01 17:05:12 UTC`."""
    return f"{datetime.fromisoformat(iso).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _build_meter(summary: Summary) -> Html:
    share = 100 * summary.accounted / summary.requests
    bar = element("span", style=f"width:{min(share, 99.9) if share < 100 else 100:.1f}%")
    return element("div", bar, class_=f"meter {summary.state}", aria_hidden="true")


def _list_context(summary: Summary) -> Iterator[tuple[Html, Html]]:
    broken = [flag for flag in summary.validity if flag.flag == Flag.UNBALANCED]
    if broken:
        verdict = element("dd", f"does not balance: {broken[0].detail}", class_="bad")
    else:
        is_at_rest = summary.state in REST_STATES
        verdict = element("dd", "balances" if is_at_rest else "balances so far", class_="good")
    yield element("dt", "account"), verdict
    yield element("dt", "resent at most"), element("dd", format_count(summary.resent_at_most))
    if summary.servers is not None:
        served = build_served(summary, summary.servers).plain
        yield element("dt", "delay servers counted"), element("dd", served)


def _build_flag(validity: Validity) -> Html:
    return element(
        "li",
        element("strong", validity.flag.replace("_", " ")),
        f" {describe_extent(validity)} {validity.detail}",
        class_="bad" if validity.flag == Flag.UNBALANCED else None,
    )


def _list_metrics(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.active_s:
        yield "throughput", format_rate(summary.throughput_rps)
    latency = summary.latency_ms
    if latency.min is not None:
        digits = choose_digits((latency.p50, latency.p99))
        for name in ("min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max"):
            yield name.replace("_", "."), format_latency(getattr(latency, name), digits)
    yield "received", format_bytes(summary.bytes_received)


def _build_metric(name: str, value: str) -> Html:
    return element("div", element("dt", name), element("dd", value))


def _build_bars(title: str, what: str, rows: list[tuple[str, int, str]], whole: int, note: str) -> Html:
    if not rows:
        return element("div", element("h3", title), element("p", "None.", class_="note"))
    body = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", format_count(count), class_="number"),
            element("td", format_share(count, whole), class_="number"),
            element("td", build_bar(count, whole, class_), class_="bar-cell"),
        )
        for name, count, class_ in rows
    ]
    heads = [element("th", head, scope="col") for head in (what, "requests", "share", "")]
    return element(
        "div",
        element("h3", title),
        element("table", element("thead", element("tr", *heads)), element("tbody", *body), class_="bars"),
        *([element("p", note, class_="note")] if note else []),
    )


def build_bar(part: float, whole: float, class_: str) -> Html:
    """Build a bar whose length is a part of a whole; one that is not zero is always visible."""
    width = max(0.5, 100 * part / whole) if part and whole else 0
    return element("span", class_=f"bar {class_}", style=f"width:{width:.2f}%", aria_hidden="true")
