"""All that prints a quantile of the same latencies prints the same one, whatever their number."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.histograms import make_histogram, make_latency
from tests.kit.outcomes import make_counts
from tests.kit.runs import summaries
from tests.kit.runs.summaries import make_outcomes
from tests.unit.cli.report.conftest import START

from oku_cli.report.charts.histogram_chart import ShownDistribution
from oku_cli.report.charts.percentiles import build_percentile_chart
from oku_cli.report.hgrm import build_percentile_rows
from oku_cli.report.history_reader import LeaseBands, RunHistory
from oku_cli.report.output_files import build_csv, build_hgrm_text
from oku_coordinator.ledger.storage.run_account import PartAccounts, RunAccount
from oku_coordinator.runs.summary.part_summaries import build_request_figures
from oku_coordinator.telemetry.tick_maker import TargetTicks
from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.messaging.checkpoint import Part
from oku_core.results.coverage import Coverage
from oku_core.results.sample import Sample, build_latencies_ms, build_sample, merge_samples
from oku_core.spec.target import Target
from oku_core.spec.values.threshold import Threshold
from oku_core.statistics.spread import Spread, build_intervals
from oku_core.summary.latency_summary import LatencySummary, build_latency_summary
from oku_core.summary.summary import Summary
from oku_core.summary.summary_lines import build_threshold_lines
from oku_core.tables.time_tables import LATENCY
from oku_core.thresholds.judging import judge
from oku_core.thresholds.measurement import Measurement

NAMES = ("p50", "p90", "p95", "p99", "p99_9")
LEVELS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "max": 1.0}
_OFTEN = settings(max_examples=25, deadline=None)


def find_exact_us(values_us: list[int], level: float) -> int:
    """The smallest of the values that at least this share of them does not exceed."""
    share = Fraction(repr(level))
    ordered = sorted(values_us)
    return next(value for rank, value in enumerate(ordered, 1) if Fraction(rank, len(ordered)) >= share)


def list_figures(values_us: list[int]) -> Iterator[tuple[str, Mapping[str, float | None]]]:
    """What each place prints of the latencies of one run, by the names of quantiles, in ms."""
    histogram, latency = make_histogram(values_us), make_latency(values_us)
    summary = build_summary(histogram)
    account = build_account(latency)
    yield "phase or target of a summary", pick(build_request_figures(account)["latency_ms"])
    yield "summary", pick(summary.latency_ms)
    yield (
        "sample, line of a range or of a worker",
        pick_ms(build_latencies_ms({Time.LATENCY: latency}, [Time.LATENCY])),
    )
    sample = build_one_sample(latency)
    merged = merge_samples([sample]).times
    yield "merged samples", pick_ms(build_latencies_ms(merged, [Time.LATENCY]))
    accounts = RunAccount(PartAccounts({("", "home"): account}))
    [tick] = TargetTicks().build("r1", [Target(name="home", url="/")], accounts)
    yield "tick of a target", {"p50": tick.p50_ms, "p99": tick.p99_ms}
    yield "threshold", {name: judge_value(name, histogram, len(values_us)) for name in (*NAMES, "max")}
    yield "line of a threshold", {"p99": find_line_value("p99", histogram, len(values_us))}
    chart, _ = build_percentile_chart([ShownDistribution("latency", "requests", LATENCY.decode(summary))])
    rows = list(build_percentile_rows(LATENCY.decode(summary)))
    drawn = dict(zip([row.level for row in rows], chart.series[0].values, strict=True))
    yield "chart by percentile", {name: drawn[level] for name, level in LEVELS.items() if level in drawn}
    history = RunHistory(
        at=START, summary=summary, spec={}, extent=1, periods=[], samples=[sample], events=[],
        leases=LeaseBands(1), coverage=Coverage(1),
    )  # fmt: skip
    [exported] = csv.DictReader(io.StringIO(build_csv(history)))
    columns = {name: float(exported[f"{name}_ms"]) for name in ("p50", "p90", "p99", "p99_9", "max")}
    yield "CSV", columns
    yield "HdrHistogram text", read_hgrm(build_hgrm_text(history))


def build_summary(histogram: Histogram) -> Summary:
    """The summary of a run with these latencies."""
    total = histogram.total
    return summaries.build_summary(
        histogram, requests=total, accounted=total, outcomes=make_outcomes(ok=total), statuses={"200": total}
    )


def build_account(latency: HistogramSnapshot) -> Account:
    """The account of requests with these latencies."""
    account = Account()
    account.add(
        Part(
            outcomes=make_counts(latency.total),
            statuses={"200": latency.total},
            times={Time.LATENCY: latency},
        )
    )
    return account


def build_one_sample(latency: HistogramSnapshot) -> Sample:
    """A second in which all of them ended."""
    fields: dict[str, Any] = dict.fromkeys(("accounted", "leased", "pending", "done", "resent_at_most"), 0)
    return build_sample(
        at=START, seconds=1.0, requests_total=latency.total, in_flight=1.0, workers=1,
        outcomes=make_counts(latency.total), times={Time.LATENCY: latency}, **fields,
    )  # fmt: skip


def pick(figures: LatencySummary) -> dict[str, float | None]:
    """The quantiles of a summary."""
    return {name: getattr(figures, name) for name in (*NAMES, "max")}


def pick_ms(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    """Those under the names of a sample."""
    return {name.removesuffix("_ms"): value for name, value in figures.items() if name != "mean_ms"}


def judge_value(name: str, histogram: Histogram, total: int) -> float | None:
    """The value of a threshold on a quantile of a run whose requests were all answered."""
    return judge(build_threshold(name), build_measurement(histogram, total)).value


def find_line_value(name: str, histogram: Histogram, total: int) -> float | None:
    """What Loki is told of such a threshold."""
    judged = judge(build_threshold(name), build_measurement(histogram, total))
    [line] = build_threshold_lines([judged])
    return float(json.loads(json.dumps(line["value"])))


def build_threshold(name: str) -> Threshold:
    """A threshold on a quantile."""
    return Threshold(f"{name.replace('_', '.')} < 1ms")


def build_measurement(histogram: Histogram, total: int) -> Measurement:
    """All requests of a run that is over."""
    account = Account()
    account.add(
        Part(
            outcomes=make_counts(total),
            statuses={"200": total},
            times={Time.LATENCY: histogram.build_latency()},
        )
    )
    return Measurement(parts=[account], is_over=True, seconds=1.0)


def read_hgrm(text: str) -> dict[str, float]:
    """The quantiles of an export that stand in it under their own percentile."""
    rows = [line.split() for line in text.splitlines() if line[:12].strip()[:1].isdigit()]
    values = {float(row[1]): float(row[0]) for row in rows}
    return {name: values[level] for name, level in LEVELS.items() if level in values}


@_OFTEN
@given(st.lists(st.integers(1, 3_000_000) | st.integers(1, 2_000), min_size=1, max_size=330))
def test_every_place_has_the_same_quantile(values_us: list[int]) -> None:
    """It is the nearest rank, within a bucket, and neither above the maximum nor below the minimum."""
    check(values_us)


@pytest.mark.heavy
def test_numbers_of_requests_at_which_ways_of_rounding_part() -> None:
    """101 requests: 99 % of them are 99.99, so the 100th has to be within; rounded ranks differ at 151."""
    for total in (1, 2, 3, 10, 11, 99, 100, 101, 149, 150, 151, 199, 251, 1000, 1001, 1499, 1501, 2001):
        check([1000 * rank for rank in range(1, total + 1)])
        check([*range(2, total + 1), 5_000_123])


def check(values_us: list[int]) -> None:
    """Compare all places with the exact quantile and with each other."""
    faults = []
    expected = pick(build_latency_summary(make_histogram(values_us)))
    for place, figures in list_figures(values_us):
        for name, value in figures.items():
            exact_ms = find_exact_us(values_us, LEVELS[name]) / 1000
            is_right = value is not None and exact_ms <= value <= min(exact_ms * 1.001, max(values_us) / 1000)
            if value != expected[name] or not is_right:
                faults.append(f"{place}: {name} is {value}, not {expected[name]}, exactly {exact_ms}")
        found = [figures[name] for name in LEVELS if name in figures]
        if found != sorted(found, key=lambda value: value or 0.0):
            faults.append(f"{place}: {figures} do not rise")
    assert not faults, "\n".join(faults[:5])


@given(st.floats(0.0, 1e6), st.lists(st.floats(-0.5, 0.5), min_size=10, max_size=50))
def test_an_interval_contains_its_quantile(value_ms: float, deviations: list[float]) -> None:
    """However one-sided the resamples are, and however small the quantile is."""
    value_ms = round(value_ms, 3)
    spread = Spread(deviations={"p99": deviations}, blocks=6.0)
    interval = build_intervals(spread, LatencySummary(p99=value_ms, max=value_ms)).p99
    assert interval is not None
    assert interval[0] <= value_ms <= interval[1]
