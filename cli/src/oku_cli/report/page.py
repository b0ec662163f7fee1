"""Puts a report together: one HTML file that contains its styles and its script and loads nothing."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml

from oku_cli.comparison.run_seconds import RunSeconds
from oku_cli.report.charts.chart import build_chart, build_section, name_units
from oku_cli.report.charts.coverage_chart import build_lease_chart, build_strips
from oku_cli.report.charts.histogram_chart import (
    build_histogram_chart,
    build_overlay_chart,
    list_shown_distributions,
)
from oku_cli.report.charts.latency_chart import build_due_chart, build_heatmap, build_quantile_chart
from oku_cli.report.charts.load_chart import build_in_flight_chart, build_rate_chart, build_trouble_chart
from oku_cli.report.charts.over_time import TRACK, RunOverTime, build_run_over_time, build_track
from oku_cli.report.charts.percentiles import build_percentile_chart
from oku_cli.report.charts.planned_load import build_plan
from oku_cli.report.charts.timeline import build_timeline, clip_start
from oku_cli.report.document import ReadOut, build_document
from oku_cli.report.events import build_events, build_marks
from oku_cli.report.history_reader import RunHistory, read_load
from oku_cli.report.markup import Html, build_titled_table, element
from oku_cli.report.masking import has_mask, mask_spec
from oku_cli.report.summary_sections import (
    build_balance,
    build_failure_section,
    build_head,
    build_name_section,
    build_outcome_section,
    build_phase_section,
    build_step_section,
    build_target_section,
    build_threshold_section,
    build_worker_section,
    describe_state,
)
from oku_core.process.redaction import MASK
from oku_core.results.sample import Sample
from oku_core.spec.load import WARM_UP
from oku_core.summary.summary import Summary, Unit
from oku_core.tables.formatting import format_interval
from oku_core.tables.time_tables import TIMES, build_times, name_figure

_NOTHING_OVER_TIME = (
    "There are no samples of this run: it was too short. Its account and its totals are complete."
)


def build_page(history: RunHistory, *, show_secrets: bool = False) -> str:
    """Build the report of a run in any state as HTML; `show_secrets` leaves the spec unmasked."""
    read_out = ReadOut(history.summary.unit)
    sections = [*_build_sections(history, read_out), _build_spec(history.spec, show_secrets=show_secrets)]
    made = datetime.fromtimestamp(history.at, UTC)
    summary = history.summary
    parts = (summary.name or summary.run, summary.target, describe_state(summary), "Oku")
    title = " · ".join(filter(None, parts))
    footer = element("footer", f"As of {made:%Y-%m-%d %H:%M:%S} UTC. Made by Oku from the ledger.")
    return build_document(title, [build_head(history.summary), *sections, footer], read_out)


def build_unfinished_page(text: str) -> bytes:
    """Build the page of a command that has no report, with the reason."""
    parts = [element("h1", "No report"), element("p", text)]
    return build_document("No report · Oku", parts, ReadOut()).encode()


def _build_sections(history: RunHistory, read_out: ReadOut) -> list[Html]:
    summary, load = history.summary, read_load(history.spec)
    plan = build_plan(load, history.periods, history.samples)
    samples = clip_start(history.samples, plan.periods[0].starts_at) if plan else history.samples
    timeline = build_timeline(samples, history.leases.bands)
    over_time = None
    if timeline is not None:
        over_time = build_run_over_time(samples, timeline, build_marks(history.events, timeline), plan)
    bounds = [sample.clock_bound_s for sample in samples if sample.clock_bound_s is not None]
    sections = (
        build_name_section(summary),
        build_balance(summary, load, clock_bound_s=max(bounds, default=None)),
        build_threshold_section(summary),
        _build_over_time(samples, over_time, read_out),
        build_phase_section(summary, load),
        build_target_section(summary),
        _build_distributions(_add_intervals(history), read_out),
        build_step_section(summary) if summary.unit is Unit.REQUEST else None,
        build_outcome_section(summary, load),
        build_failure_section(summary),
        build_worker_section(summary),
        _build_coverage(history, over_time),
        build_events(history.events, timeline.start if timeline else None),
    )
    return [section for section in sections if section]


def _build_over_time(samples: Sequence[Sample], over_time: RunOverTime | None, read_out: ReadOut) -> Html:
    if over_time is None or not over_time.columns:
        return build_section("Over time", element("p", _NOTHING_OVER_TIME, class_="note"), id_="over-time")
    charts = [
        build_rate_chart(over_time),
        build_trouble_chart(over_time),
        build_quantile_chart(over_time),
        build_due_chart(over_time),
        build_heatmap(samples, over_time),
        build_in_flight_chart(over_time),
    ]
    read_out.tracks[TRACK] = build_track(over_time)
    return build_section("Over time", *read_out.build_charts(charts), id_="over-time")


def _build_distributions(summary: Summary, read_out: ReadOut) -> Html | None:
    distributions = list_shown_distributions(summary)
    if not distributions:
        return None
    is_single = len(distributions) == 1
    histogram, read_out.tracks["histogram"] = (
        build_histogram_chart(distributions[0].histogram) if is_single else build_overlay_chart(distributions)
    )
    percentiles, read_out.tracks["percentiles"] = build_percentile_chart(distributions)
    notes = [*_describe_warm_up(summary), *_describe_intervals(summary)]
    if is_single:
        pair = element("div", *read_out.build_charts([histogram, percentiles]), class_="pair")
        title = "Latencies of the whole run" if summary.unit is Unit.REQUEST else "How long iterations took"
        return build_section(title, *notes, pair, id_="latencies")
    table = build_titled_table(build_times(summary), "figures")
    pair = element("div", table, *read_out.build_charts([percentiles]), class_="pair")
    return build_section(
        "Latency, response time and lateness", *notes, pair, *read_out.build_charts([histogram]),
        id_="latencies",
    )  # fmt: skip


def _describe_warm_up(summary: Summary) -> Iterator[Html]:
    if any(phase.name == WARM_UP for phase in summary.phases):
        yield element("p", "Without the warm-up.", class_="note")


def _add_intervals(history: RunHistory) -> Summary:
    return RunSeconds(summary=history.summary, spec=history.spec, samples=history.samples).build_intervals()


def _describe_intervals(summary: Summary) -> Iterator[Html]:
    for time in TIMES:
        if (intervals := time.pick_intervals(summary)) is not None:
            ends = msgspec.structs.asdict(intervals).items()
            texts = [f"{name_figure(key)} {format_interval(end)}" for key, end in ends if end]
            yield element("p", f"95 % intervals of the {time.label}: {', '.join(texts)}.", class_="note")


def _build_coverage(history: RunHistory, over_time: RunOverTime | None) -> Html:
    chart = build_lease_chart(history, over_time) if over_time else None
    return build_section(
        "Coverage",
        build_strips(history),
        *([build_chart(name_units(chart, history.summary.unit))] if chart else []),
        id_="coverage",
    )


def _build_spec(spec: Mapping[str, Any], *, show_secrets: bool) -> Html:
    masked = dict(spec) if show_secrets else mask_spec(spec)
    text = yaml.safe_dump(masked, sort_keys=False, allow_unicode=True, default_flow_style=False, width=100)
    note = "Save this to a file to run it again: oku run FILE."
    if has_mask(spec, masked):
        note += f" Each {MASK} hides what may be a secret: put it back first."
    return build_section(
        "Spec",
        element("p", note, class_="note"),
        element("pre", element("code", text), tabindex="0"),
        id_="spec",
    )
