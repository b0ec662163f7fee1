"""Every query of every dashboard, asked of a real Loki as Grafana would ask it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from tests.kit.loki.dashboards import DashboardQuery, Frame, Grafana, Source, list_queries
from tests.kit.loki.loki import Loki
from tests.kit.outcomes import make_counts
from tests.kit.runs.synthetic_run import LOAD, TARGET, SyntheticRun, push

QUERIES = {str(query): query for query in list_queries()}
assert len(QUERIES) == len(list_queries())


@dataclass(frozen=True)
class Stage:
    """A Loki with runs in it, and a Grafana that looks at one or two of them."""

    loki: Loki
    run: SyntheticRun
    other: SyntheticRun
    grafana: Grafana

    def fetch(self, where: str) -> list[Frame]:
        """What a query of Oku / Run gets."""
        return self.grafana.fetch(QUERIES[f"oku-run: {where}"])

    def fetch_figure(self, where: str) -> float:
        """The one figure that a query of Oku / Run gets."""
        [frame] = self.fetch(where)
        [value] = frame.values
        return float(value)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two runs: one with a rate, a lost worker and lines of which half came late, and one without a name."""
    now = int(time.time())
    run = SyntheticRun(run="20261121-140000-aaaa", start=now - 900, late_before=60, has_rate=True)
    other = SyntheticRun(run="20261121-141000-bbbb", start=now - 600, name="", loses_worker=False, rate=500)
    with Loki(tmp_path_factory.mktemp("loki")) as loki:
        push(loki.url, run.build_lines())
        push(loki.url, other.build_lines())
        variables = {"run": run.run, "run_a": run.run, "run_b": other.run}
        yield Stage(loki, run, other, Grafana(loki.url, now - 1800, now, variables))


@pytest.mark.parametrize("query", QUERIES.values(), ids=str)
def test_a_query_gets_data(stage: Stage, query: DashboardQuery) -> None:
    """Each panel, annotation and variable has data for a run with a rate that lost a worker."""
    if query.is_of_now:
        assert stage.grafana.fetch(query) == []
        running = Grafana(stage.loki.url, stage.grafana.start_s, stage.run.start + 60, {"run": stage.run.run})
        assert any(len(frame.values) for frame in running.fetch(query))
        return
    frames = stage.grafana.fetch(query)
    if query.is_rare or query.is_of_user_code:
        assert frames == []
        return
    assert frames
    assert all(len(frame.values) for frame in frames)
    assert len(frames) <= 500
    if query.source in (Source.COURSE, Source.FIGURE):
        assert not any("late" in frame.labels for frame in frames)


@pytest.mark.parametrize("query", QUERIES.values(), ids=str)
def test_a_query_gets_data_of_a_run_that_nothing_happened_to(stage: Stage, query: DashboardQuery) -> None:
    """No panel of a healthy run is empty: what did not happen is zero. Events are there if they happened."""
    variables = {"run": stage.other.run, "run_a": stage.other.run, "run_b": stage.run.run}
    grafana = Grafana(stage.loki.url, stage.grafana.start_s, stage.grafana.end_s, variables)
    if query.is_for_rates or query.is_of_user_code:
        assert grafana.fetch(query) == []
    elif query.source is not Source.ANNOTATION and not query.is_of_now and not query.is_rare:
        assert any(len(frame.values) for frame in grafana.fetch(query))


def test_sums_are_those_of_the_ledger(stage: Stage) -> None:
    """Sums match the ledger to the last request, even when half of the lines came late."""
    assert stage.fetch_figure("Sums over ranges: B") == stage.run.requests
    assert stage.fetch_figure("Account: B") == stage.run.requests
    assert stage.fetch_figure("Not ok so far: A") == stage.run.failures
    assert stage.fetch_figure("Progress: A") == 1
    outcomes = [stage.fetch_figure(f"Outcomes of the run: {ref}") for ref in "ABCDEFGHIJ"]
    assert outcomes == make_counts(stage.run.requests - stage.run.failures, timeout=stage.run.failures)


def test_the_last_value_is_the_latest_of_all_streams(stage: Stage) -> None:
    """A late line is older than the others, though its value may be larger."""
    assert stage.fetch_figure("Account: C") == 0
    assert stage.fetch_figure("Account: D") == 0
    assert stage.fetch_figure("Time left: A") == 0


def test_the_state_is_the_latest(stage: Stage) -> None:
    """Of all states that a run had, the latest is shown."""
    [frame] = stage.fetch("State: A")
    assert frame.labels == {"state": "completed"}


def test_time_series_add_up(stage: Stage) -> None:
    """Each line is in exactly one step: heatmap buckets and statuses sum to what was written."""
    steps = stage.fetch("Latencies: A")
    lines = [line for line in stage.run.build_lines() if line[0]["kind"] == "latency"]
    assert sum(sum(frame.values) for frame in steps) == pytest.approx(
        sum(int(text.rsplit(" ", 1)[1].rstrip("}")) for _, _, text in lines)
    )
    [statuses] = stage.fetch("Statuses: A")
    step_s = stage.grafana.compute_step_s(QUERIES["oku-run: Statuses: A"].panel)
    assert sum(statuses.values) * step_s == pytest.approx(stage.run.requests - stage.run.failures)


def test_a_rate_is_right_whatever_a_step_holds(stage: Stage) -> None:
    """Steps of two seconds hold one, two or three ticks."""
    for where in ("Rate: B", "Rate: A", "Sent and planned: B"):
        [rate] = stage.fetch(where)
        assert set(rate.values) <= {2000.0, 2500.0, 3000.0}, where


def test_phases_sum_to_the_run(stage: Stage) -> None:
    """Each phase has a row, with the figures of its ranges and of its own lines."""
    for ref in "BC":  # due, and accounted
        counts = {frame.labels["phase"]: frame.values[0] for frame in stage.fetch(f"Phases: {ref}")}
        assert set(counts) == {"ramp", "soak"}
        assert sum(counts.values()) == stage.run.requests
    rates = [[frame.values for frame in stage.fetch(f"Phases: {ref}")] for ref in "IJK"]
    assert rates == [[[1235.0]] * 2, [[1234.5]] * 2, [[1230.0]] * 2]
    failed = sum(frame.values[0] for frame in stage.fetch("Phases: E"))
    assert failed == stage.run.failures


def test_targets_sum_to_the_run(stage: Stage) -> None:
    """Each target has a row and a line over time, unless the regular expression leaves it out."""
    rows = {frame.labels["target"]: frame.values[0] for frame in stage.fetch("Targets: A")}
    assert set(rows) == {"item", "buy"}
    assert sum(rows.values()) == stage.run.requests
    courses = {frame.name: sum(frame.values) for frame in stage.fetch("Requests by target: A")}
    assert courses == rows
    shares = {frame.labels["target"]: frame.values[0] for frame in stage.fetch("Targets: B")}
    assert shares["item"] == 1
    assert shares["buy"] == pytest.approx(1 - stage.run.failures / rows["buy"])
    chosen = {"run": stage.run.run, "target": "b.*"}
    grafana = Grafana(stage.loki.url, stage.grafana.start_s, stage.grafana.end_s, chosen)
    [frame] = grafana.fetch(QUERIES["oku-run: Targets: A"])
    assert frame.labels == {"target": "buy"}


def test_the_head_says_what_is_asked_and_whether_it_passed(stage: Stage) -> None:
    """A run without thresholds has no verdict."""
    [head] = stage.fetch("Target and load: A")
    assert head.labels == {"target": TARGET, "load": LOAD}
    [verdict] = stage.fetch("Verdict: A")
    assert verdict.labels == {"verdict": "failed"}


def test_thresholds_are_those_of_the_latest_time_at_rest(stage: Stage) -> None:
    """One that was undecided when the run was paused has one row, with what became of it in the end."""
    columns = [stage.fetch(f"Thresholds: {ref}") for ref in "ABCD"]
    labels = {"expression": "p99 < 100ms", "verdict": "failed", "unit": "ms"}
    assert [[frame.labels for frame in frames] for frames in columns] == [[labels]] * 4
    requests = stage.run.requests
    assert [frames[0].values for frames in columns] == [[150.3], [100], [requests // 50], [requests // 100]]


def test_failures_are_those_of_the_latest_time_at_rest(stage: Stage) -> None:
    """A run that was paused has lines of what had failed until then, too: they do not add up."""
    rows = [stage.fetch(f"What failed, and why: {ref}") for ref in "ABC"]
    reasons = {"target": "buy", "outcome": "timeout", "reason": "no answer within 10s", "request": ""}
    assert [[frame.labels for frame in frames] for frames in rows] == [[reasons]] * 3
    assert [frames[0].values for frames in rows] == [[stage.run.failures], [7], [stage.run.requests - 1]]


def test_runs_are_listed_by_name_or_all_together(stage: Stage) -> None:
    """The choice of all runs includes those without a name."""
    query = QUERIES["oku-run: $run"]
    assert set(stage.grafana.fetch(query)[0].values) == {stage.run.run, stage.other.run}
    named = Grafana(stage.loki.url, stage.grafana.start_s, stage.grafana.end_s, {"name": stage.run.name})
    assert named.fetch(query)[0].values == [stage.run.run]


def test_a_run_to_compare_with_is_another_one(stage: Stage) -> None:
    """The second choice of Oku / Compare leaves out the first run."""
    assert stage.grafana.fetch(QUERIES["oku-compare: $run_b"])[0].values == [stage.other.run]


def test_the_table_of_runs_knows_when_they_were(stage: Stage) -> None:
    """The links of the table show a run with some time before and after it."""
    starts = {frame.labels["run"]: frame.values[0] / 1000 for frame in stage.fetch("Runs: A")}
    ends = {frame.labels["run"]: frame.values[0] / 1000 for frame in stage.fetch("Runs: B")}
    assert starts[stage.run.run] == pytest.approx(stage.run.start - 30, abs=11)
    assert ends[stage.run.run] == pytest.approx(stage.run.start + stage.run.seconds + 30, abs=2)


def test_of_a_thousand_workers_some_are_named_and_the_extremes_shown(stage: Stage) -> None:
    """Loki returns at most 500 series: the highest and the lowest are among them, names if they are fewer."""
    many = replace(stage.run, run="20261121-142000-cccc", workers=1000, rate=10, seconds=30, late_before=0)
    push(stage.loki.url, many.build_lines())
    start, end = many.start - 60, many.start + 120
    queries = [
        query
        for query in QUERIES.values()
        if query.dashboard == "oku-workers" and query.source in (Source.COURSE, Source.FIGURE)
    ]
    named = Grafana(stage.loki.url, start, end, {"run": many.run, "worker": "worker-[12]..?"})
    for query in queries:
        frames = named.fetch(query)
        assert frames, query
        assert len(frames) <= 220, query
    everyone = Grafana(stage.loki.url, start, end, {"run": many.run})
    for query in queries:
        if "$worker" in query.expr:
            with pytest.raises(AssertionError, match="maximum number of series"):
                everyone.fetch(query)
        else:
            assert everyone.fetch(query), query
