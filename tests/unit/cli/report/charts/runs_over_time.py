"""Builds runs over time from samples, and reads the charts of them."""

from collections.abc import Sequence
from typing import Any

from tests.unit.cli.report.conftest import START

from oku_cli.report.charts.chart import Chart
from oku_cli.report.charts.over_time import RunOverTime, build_run_over_time
from oku_cli.report.charts.planned_load import Plan, build_plan
from oku_cli.report.charts.timeline import build_timeline
from oku_cli.report.history_reader import read_load
from oku_core.results.run_api import RunPeriod
from oku_core.results.sample import Sample


def build(samples: Sequence[Sample], plan: Plan | None = None) -> RunOverTime:
    """Build the run over time from these samples, with a plan if it is known."""
    timeline = build_timeline(samples, [])
    assert timeline is not None
    return build_run_over_time(samples, timeline, [], plan)


def make_plan(*periods: RunPeriod, **load: Any) -> Plan:
    """Make the plan of this load, whose clock ran in these periods; without any, since `START`."""
    plan = build_plan(read_load(load), periods or (RunPeriod(START, 0.0),), [])
    assert plan is not None
    return plan


def read(chart: Chart) -> dict[str, Sequence[float | None]]:
    """Return the numbers that can be read out of a chart, by label."""
    return {series.label: series.values for series in chart.series}
