import math
from collections import Counter
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oku_core.accounting.histogram import (
    HIGHEST_US,
    Histogram,
    HistogramSnapshot,
    bucket_bounds_us,
    bucket_index,
)
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.messaging.lease import Report, find_fault

ANSWERED = {Outcome.OK, Outcome.UNEXPECTED_STATUS}
FIGURES = [
    "bytes_received", "started_at", "ended_at", "cpu_s", "peak_rss_mb", "max_lag_s", "busy_share",
    "clock_step_s",
]  # fmt: skip
FIELDS = [field.name for field in msgspec.structs.fields(Report)]


class Case(NamedTuple):
    """A report and the range of its lease."""

    report: Report
    start: int
    stop: int

    def change(self, **changes: Any) -> str | None:
        """Return the fault that is found if a true report is changed."""
        return find_fault(msgspec.structs.replace(self.report, **changes), self.start, self.stop)


@st.composite
def true_reports(draw: st.DrawFn) -> Case:
    """Draw the report of a worker that has sent a prefix of a range, request by request."""
    start = draw(st.integers(0, 10**15))
    stop = start + draw(st.integers(1, 30))
    done = draw(st.integers(start, stop))
    taken = range(start, done)
    unfinished = sorted(draw(st.sets(st.sampled_from(taken))) if taken else [])
    latency = Histogram()
    outcomes = dict.fromkeys(OUTCOMES, 0)
    statuses: Counter[str] = Counter()
    for _ in range(len(taken) - len(unfinished)):
        outcome = draw(st.sampled_from(OUTCOMES))
        outcomes[outcome] += 1
        if outcome in ANSWERED:
            statuses[draw(st.sampled_from(["200", "404", "503", "999", "0"]))] += 1
            latency.record(draw(st.integers(0, 5000) | st.integers(0, HIGHEST_US)))
    report = Report(
        lease="l1",
        execution="e1",
        worker="w1",
        incarnation="b1",
        start=start,
        done=done,
        unfinished=unfinished,
        outcomes=list(outcomes.values()),
        statuses=dict(statuses),
        bytes_received=draw(st.integers(0, 10**12)),
        latency=latency.build_latency(),
        started_at=1.7e9,
        ended_at=1.7e9 + draw(st.floats(0, 3600)),
        cpu_s=draw(st.floats(0, 3600)),
        peak_rss_mb=draw(st.floats(0, 1e6)),
        max_lag_s=draw(st.floats(0, 60)),
        busy_share=draw(st.floats(0, 1)),
        clock_step_s=draw(st.floats(0, 1e6)),
    )
    return Case(report, start, stop)


def build_case() -> Case:
    """A report of seven requests out of ten, one of them unfinished."""
    latency = Histogram()
    for value_us in (1000, 1000, 5000):
        latency.record(value_us)
    report = Report(
        lease="l1",
        execution="e1",
        worker="w1",
        incarnation="b1",
        start=100,
        done=107,
        unfinished=[105],
        outcomes=[2, 1, 3, 0, 0, 0],
        statuses={"200": 2, "500": 1},
        latency=latency.build_latency(),
        started_at=1.7e9,
        ended_at=1.7e9 + 1,
    )
    return Case(report, 100, 110)


def is_possible(report: Report, start: int, stop: int) -> bool:
    """Judge a report in another way: index by index and bucket by bucket, regardless of speed."""
    space = range(start, stop + 1)
    if report.start != start or report.done not in space:
        return False
    taken = set(range(start, report.done))
    unfinished = set(report.unfinished)
    answers = report.outcomes[:2]
    buckets = dict(zip(report.latency.buckets[0::2], report.latency.buckets[1::2], strict=False))
    legal_buckets = all(
        0 <= index <= bucket_index(HIGHEST_US) and count > 0 for index, count in buckets.items()
    )
    bounds = [bucket_bounds_us(index) for index in buckets] if legal_buckets else []
    return (
        unfinished <= taken
        and sorted(unfinished) == report.unfinished
        and len(report.outcomes) == 6
        and all(count >= 0 for count in report.outcomes)
        and sum(report.outcomes) == len(taken - unfinished)
        and all(status in {str(code) for code in range(1000)} for status in report.statuses)
        and all(count > 0 for count in report.statuses.values())
        and sum(report.statuses.values()) == sum(answers) == sum(buckets.values())
        and legal_buckets
        and len(report.latency.buckets) == 2 * len(buckets)
        and list(buckets) == sorted(buckets)
        and all(0 <= strained <= len(taken - unfinished) for strained in (report.saturated, report.lagged))
        and is_possible_latency(report.latency, list(buckets.values()), bounds)
        and all(
            math.isfinite(getattr(report, name)) and 0 <= getattr(report, name) < 2**53 for name in FIGURES
        )
    )


def is_possible_latency(latency: HistogramSnapshot, counts: list[int], bounds: list[tuple[int, int]]) -> bool:
    """Whether sum, minimum and maximum are possible with these buckets."""
    if not counts:
        return (latency.sum_us, latency.min_us, latency.max_us) == (0, 0, 0)
    return (
        bounds[0][0] <= latency.min_us <= bounds[0][1]
        and bounds[-1][0] <= latency.max_us <= bounds[-1][1]
        and latency.min_us <= latency.max_us
        and sum(count * low for count, (low, _) in zip(counts, bounds, strict=True)) <= latency.sum_us
        and latency.sum_us <= sum(count * high for count, (_, high) in zip(counts, bounds, strict=True))
    )


def mutate(data: st.DataObject, value: Any) -> Any:
    """Draw another value of the same type, near the old value or far from it."""
    match value:
        case bool() | str():
            return value
        case int():
            return data.draw(st.sampled_from([value - 1, value + 1, -value - 1, 0, 2**53 - 1, 2**53, 10**30]))
        case float():
            return data.draw(st.sampled_from([value + 1, -1e-9, math.nan, math.inf, -math.inf, 2.0**53]))
        case list():
            return mutate_list(data, value)
        case dict():
            names = st.sampled_from(["200", "404", "007", "7", "", "ok", "1000", "-1", "٢٠٠", "2xx", *value])
            changed = dict(value)
            changed.pop(data.draw(names), None)
            return changed | {data.draw(names): data.draw(st.integers(-1, 30))}
    name = data.draw(st.sampled_from([field.name for field in msgspec.structs.fields(value)]))
    return msgspec.structs.replace(value, **{name: mutate(data, getattr(value, name))})


def mutate_list(data: st.DataObject, value: list[int]) -> list[int]:
    """Draw the list with one number changed, removed, doubled, moved or added."""
    place = data.draw(st.integers(0, max(0, len(value) - 1)))
    here = value[place : place + 1]
    other = data.draw(
        st.sampled_from([[], here * 2, [n + 1 for n in here], [n - 1 for n in here], [0], [10**30]])
    )
    changed = [*value[:place], *other, *value[place + 1 :]]
    return changed[::-1] if data.draw(st.booleans()) else changed


@given(true_reports())
def test_a_true_report_passes(case: Case) -> None:
    """Whatever a worker has sent, and wherever it had to stop, its true report is accepted."""
    assert find_fault(*case) is None


@given(true_reports())
def test_a_report_covers_the_requests_that_were_begun_and_finished(case: Case) -> None:
    """Its outcomes sum to their number."""
    assert case.report.covered == sum(case.report.outcomes)


@settings(max_examples=200)
@given(data=st.data(), case=true_reports())
def test_a_report_with_one_field_changed_passes_only_if_it_may_be_true(
    data: st.DataObject, case: Case
) -> None:
    """Every changed number, list, status or bucket that contradicts the rest is found, and no other."""
    field = data.draw(st.sampled_from(FIELDS))
    forged = msgspec.structs.replace(case.report, **{field: mutate(data, getattr(case.report, field))})
    assert (find_fault(forged, case.start, case.stop) is None) == is_possible(forged, case.start, case.stop)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"start": 99}, "covers [99, 107), but the lease is [100, 110)"),
        ({"start": 101}, "covers [101, 107), but the lease is [100, 110)"),
        ({"done": 99}, "covers [100, 99), but the lease is [100, 110)"),
        ({"done": 111}, "covers [100, 111), but the lease is [100, 110)"),
        ({"unfinished": [99]}, "the unfinished indices do not rise within what is covered"),
        ({"unfinished": [107]}, "the unfinished indices do not rise within what is covered"),
        ({"unfinished": [105, 105]}, "the unfinished indices do not rise within what is covered"),
        ({"unfinished": [105, 104]}, "the unfinished indices do not rise within what is covered"),
        ({"outcomes": []}, "the outcomes are not six counts"),
        ({"outcomes": [2, 1, 3, 0, 0]}, "the outcomes are not six counts"),
        ({"outcomes": [2, 1, 3, 0, 0, 0, 0]}, "the outcomes are not six counts"),
        ({"outcomes": [2, 1, 4, -1, 0, 0]}, "the outcomes are not six counts"),
        ({"outcomes": [2, 1, 4, 0, 0, 0]}, "the outcomes sum to 7, but 6 are covered"),
        ({"unfinished": []}, "the outcomes sum to 6, but 7 are covered"),
        ({"outcomes": [3, 1, 2, 0, 0, 0]}, "the statuses do not sum to the 4 answered"),
        ({"statuses": {}}, "the statuses do not sum to the 3 answered"),
        ({"statuses": {"200": 3, "500": 0}}, "0 responses have the status '500'"),
        ({"statuses": {"200": 4, "500": -1}}, "-1 responses have the status '500'"),
        ({"statuses": {"200": 2, "2xx": 1}}, "1 responses have the status '2xx'"),
        ({"statuses": {"200": 2, "1000": 1}}, "1 responses have the status '1000'"),
        ({"statuses": {"200": 2, "٥٠٠": 1}}, "1 responses have the status '٥٠٠'"),  # noqa: RUF001  # digits, but not a status
        ({"latency": HistogramSnapshot(buckets=[5])}, "buckets do not come in pairs"),
        ({"latency": HistogramSnapshot()}, "the histogram holds 0, but 3 are answered"),
        (
            {"latency": HistogramSnapshot(buckets=[5, 4], sum_us=20, min_us=5, max_us=5)},
            "the histogram holds 4, but 3 are answered",
        ),
        ({"bytes_received": -1}, "bytes_received is -1"),
        ({"bytes_received": 10**30}, f"bytes_received is {10**30}"),
        ({"started_at": math.nan}, "started_at is nan"),
        ({"ended_at": math.inf}, "ended_at is inf"),
        ({"cpu_s": -0.1}, "cpu_s is -0.1"),
        ({"peak_rss_mb": math.nan}, "peak_rss_mb is nan"),
        ({"max_lag_s": -math.inf}, "max_lag_s is -inf"),
        ({"busy_share": -1.0}, "busy_share is -1.0"),
        ({"saturated": 7}, "7 requests are saturated, but 6 are covered"),
        ({"lagged": -1}, "-1 requests are lagged, but 6 are covered"),
    ],
)
def test_every_forgery_is_named(changes: dict[str, Any], fault: str) -> None:
    """The log says what was wrong with a report."""
    case = build_case()
    assert find_fault(*case) is None
    assert case.change(**changes) == fault


@pytest.mark.parametrize(("start", "stop"), [(100, 106), (99, 110), (101, 110)])
def test_a_report_is_judged_by_its_own_lease(start: int, stop: int) -> None:
    """A report that is true for one range is not true for another."""
    fault = find_fault(build_case().report, start, stop)
    assert fault == f"covers [100, 107), but the lease is [{start}, {stop})"


def test_reports_do_not_share_their_counts() -> None:
    """Each report has its own empty defaults."""
    first, second = (
        Report(
            lease="l", execution=e, worker="w", incarnation="b", start=0, done=0, started_at=0.0, ended_at=0.0
        )
        for e in ("e1", "e2")
    )
    first.outcomes[0] += 1
    first.unfinished.append(1)
    first.statuses["200"] = 1
    assert (second.outcomes, second.unfinished, second.statuses) == ([0] * 6, [], {})
    assert find_fault(second, 0, 10) is None


def test_a_report_has_no_figures_by_default() -> None:
    """A field that a worker leaves out counts as zero."""
    report = Report(
        lease="l", execution="e", worker="w", incarnation="b", start=5, done=5, started_at=0.0, ended_at=0.0
    )
    assert {getattr(report, name) for name in FIGURES} == {0}
    assert report.latency == HistogramSnapshot()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"refusal": "ca.pem: no such file"}, None),
        ({"refusal": "x" * 300}, None),
        ({"refusal": "x" * 301}, "the refusal is not one line of up to 300 printable characters"),
        ({"refusal": "two\nlines"}, "the refusal is not one line of up to 300 printable characters"),
        ({"refusal": "no engine", "done": 4, "unfinished": [3]}, "it refuses the lease and covers [3, 4)"),
    ],
)
def test_a_refusal_gives_a_reason_and_covers_nothing(changes: dict[str, Any], fault: str | None) -> None:
    """The reason is one printable line."""
    report = Report(
        lease="l1",
        execution="e1",
        worker="w1",
        incarnation="b1",
        start=3,
        done=3,
        started_at=1.0,
        ended_at=1.0,
    )
    assert find_fault(msgspec.structs.replace(report, **changes), 3, 10) == fault
