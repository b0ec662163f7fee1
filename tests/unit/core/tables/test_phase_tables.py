from tests.kit.runs.summaries import build_summary, list_texts, make_outcomes, make_phase

from oku_core.spec.parser import Source, parse_spec
from oku_core.summary.judgement import Judgement
from oku_core.summary.latency_summary import LatencySummary
from oku_core.tables.phase_tables import build_phases


def test_the_phases_of_a_closed_run_have_counts_rates_and_latencies() -> None:
    """What is not ok is seen in the share; a phase that has not come yet has no figures."""
    later = make_phase(
        name="main", begin_s=4.0, end_s=None, requests=0, completed=0, outcomes=make_outcomes(),
        latency_ms=LatencySummary(),
    )  # fmt: skip
    phases = [make_phase(name="warm-up", outcomes=make_outcomes(ok=990, timeout=10)), later]
    table = build_phases(build_summary(phases=phases, active_s=3.0))
    assert list_texts(table) == [
        ["phase", "time", "completed", "ok", "sent/s", "completed/s", "latency p50", "latency p99"],
        ["warm-up", "2 s to 4 s", "990", "99.00 %", "500", "480", "1.50 ms", "20.0 ms"],
        ["main", "4 s to the end", "0", "-", "-", "-", "-", "-"],
    ]
    name, _, _, ok, *_ = table.rows[0].cells
    assert (name.detail, ok.value, ok.judgement) == ("10 timeout", 0.99, Judgement.BAD)


def test_the_phases_of_a_run_with_a_rate_have_its_plan_and_all_three_times() -> None:
    """What was due and planned stands beside what came of it."""
    phase = make_phase(
        due=1020, planned_rps=510.0, response_time_ms=LatencySummary(p50=2.0, p99=25.0, max=30.0),
        lateness_ms=LatencySummary(p50=0.1, p99=0.25, max=0.5),
    )  # fmt: skip
    heads, row = list_texts(build_phases(build_summary(phases=[phase])))
    shown = dict(zip(heads, row, strict=True))
    assert [shown[head] for head in ("due", "completed", "planned/s", "sent/s", "completed/s")] == [
        "1,020", "990", "510", "500", "480",
    ]  # fmt: skip
    assert heads[-6:] == [
        f"{time} {figure}" for time in ("latency", "response time", "lateness") for figure in ("p50", "p99")
    ]
    assert row[-3:] == ["25.0 ms", "100 µs", "250 µs"]


def test_stages_of_concurrency_are_planned_in_flight() -> None:
    """Such a run has no due times."""
    load = parse_spec(Source("spec", {"url": "http://h/", "stages": ["up=2s:0..50", "hold=8s:50"]}))
    phases = [make_phase(name="up", begin_s=0.0), make_phase(name="hold")]
    heads, *rows = list_texts(build_phases(build_summary(phases=phases), load))
    place = heads.index("planned")
    assert [row[place] for row in rows] == ["0 to 50 in flight", "50 in flight"]


def test_a_run_of_one_phase_has_no_rows() -> None:
    """The account says it all."""
    assert build_phases(build_summary()).rows == []
