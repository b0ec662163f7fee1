from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.outcomes import make_counts
from tests.kit.runs.summaries import (
    build_summary,
    list_texts,
    make_inner,
    make_outcomes,
    make_phase,
    make_target,
)

from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample
from oku_core.spec.parser import Source, parse_spec
from oku_core.summary.judgement import Judgement
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.request_summary import InnerSummary
from oku_core.summary.tick import TargetTick, Tick
from oku_core.tables.part_tables import (
    MOST_ROWS,
    NAMES_NOTE,
    build_live_targets,
    build_names,
    build_phase_targets,
    build_phases,
    build_targets,
    describe_worst_target,
)

SAMPLE = Sample(
    at=1.0, seconds=1.0, requests_total=1000, accounted=310, leased=0, pending=690, done=310,
    resent_at_most=0, active_s=25.0, outcomes_so_far=make_counts(310), workers=1, in_flight=1, rate_rps=1.0,
    outcomes=make_counts(10),
)  # fmt: skip
TARGETS = [
    TargetTick(name="item", outcomes=make_counts(200), p50_ms=1.0, p99_ms=9.0),
    TargetTick(name="buy", outcomes=make_counts(95, timeout=5, not_sent=10), p50_ms=2.0, p99_ms=20.0),
    TargetTick(name="pay", outcomes=make_counts(0)),
]
TICK = Tick(run="r1", state=RunState.RUNNING, sample=SAMPLE, targets=TARGETS)


def test_targets_and_named_requests_have_counts_rates_times_and_bytes() -> None:
    """What went wrong explains the name; a target without a request has no figures."""
    buy = make_target(name="buy", requests=500, outcomes=make_outcomes(ok=480, failed_check=15, timeout=5))
    none = make_target(
        name="gone", requests=0, outcomes=make_outcomes(), rate_rps=0.0, bytes_received=0,
        latency_ms=LatencySummary(),
    )  # fmt: skip
    table = build_targets(build_summary(targets=[make_target(), buy, none]))
    times = ["latency p50", "latency p95", "latency p99"]
    assert list_texts(table) == [
        ["target", "requests", "ok", "failed", "rate", *times, "bytes"],
        ["item", "1,000", "100 %", "0", "500/s", "1.50 ms", "15.0 ms", "20.0 ms", "13.0 kB"],
        ["buy", "500", "96.00 %", "20", "500/s", "1.50 ms", "15.0 ms", "20.0 ms", "13.0 kB"],
        ["gone", "0", "-", "0", "0/s", "-", "-", "-", "0 B"],
    ]
    assert table.rows[1].cells[0].detail == "5 timeout, 15 failed check"
    assert [cell.judgement for cell in table.rows[1].cells[3:5]] == [Judgement.BAD] * 2
    assert (table.title, table.note) == ("Targets", "")
    # A bar is as long as the requests are many and has each outcome.
    buy = make_target(name="buy", requests=500, outcomes=make_outcomes(ok=400, timeout=100))
    table = build_targets(build_summary(targets=[make_target(), buy]))
    bars = [[(part.kind, part.share) for part in row.cells[2].parts] for row in table.rows]
    assert bars == [[("ok", 1.0)], [("ok", 0.4), ("timeout", 0.1)]]
    # The targets of a run with a rate have all three times.
    target = make_target(
        response_time_ms=LatencySummary(p99=25.0, max=26.0), lateness_ms=LatencySummary(p99=0.25, max=1.0)
    )
    phase = make_phase(name="warm-up", targets=[target])
    table = build_targets(build_summary(targets=[target], phases=[phase]))
    shown = dict(zip(*list_texts(table), strict=True))
    assert (shown["response time p99"], shown["lateness p99"]) == ("25.0 ms", "250 µs")
    assert "include the warm-up" in table.note
    assert build_phase_targets(phase).title == "Phase warm-up"
    assert build_phase_targets(phase).rows == table.rows
    # Requests of user code have their statuses. They stand beside the account.
    failed = make_inner(name="buy", outcomes=make_outcomes(ok=990, timeout=10), statuses={"200": 990})
    table = build_names([make_inner(), failed])
    heads, _, row = list_texts(table)
    assert heads[:4] == ["name", "requests", "ok", "failed"]
    assert row[:4] == ["buy", "1,000", "99.00 %", "10"]
    assert table.rows[1].cells[0].detail == "200: 990"
    assert table.note == NAMES_NOTE
    # Of too many the worst are shown and the others are summed up.
    names = [make_inner(name=f"good-{place}") for place in range(20)]
    names.append(make_inner(name="slow", latency_ms=LatencySummary(p99=900.0)))
    names.append(make_inner(name="broken", outcomes=make_outcomes(ok=400, timeout=600)))
    _, *rows = list_texts(build_names(names, most=MOST_ROWS))
    assert len(rows) == MOST_ROWS
    assert [row[0] for row in rows[:2]] == ["broken", "slow"]
    assert rows[-1] == ["and 11 more", "11,000", "100 %", "0", "5,500/s", "", "", "", ""]


NAMES = st.builds(
    lambda ok: make_inner(outcomes=make_outcomes(ok=ok, timeout=1000 - ok)), st.integers(0, 1000)
)


@given(st.lists(NAMES, max_size=30), st.integers(2, MOST_ROWS))
def test_every_target_is_shown_or_summed_up(names: Sequence[InnerSummary], most: int) -> None:
    """None counts twice, and none that is left out is worse than one that is shown."""
    rows = build_names(names, most=most).rows
    failed = [round(row.cells[4].value or 0) for row in rows]
    assert len(rows) <= most
    assert sum(failed) == sum(name.outcomes.timeout for name in names)
    if len(rows) < len(names):
        assert failed[:-1] == sorted((name.outcomes.timeout for name in names), reverse=True)[: most - 1]


def test_while_a_run_goes_on_a_target_has_its_rate_since_the_start() -> None:
    """What was not sent counts among its requests, but not for its rate."""
    assert list_texts(build_live_targets(TICK)) == [
        ["target", "requests", "ok", "failed", "rate", "latency p50", "latency p99"],
        ["item", "200", "100 %", "0", "8.0/s", "1.00 ms", "9.00 ms"],
        ["buy", "110", "86.36 %", "15", "4.0/s", "2.00 ms", "20.0 ms"],
        ["pay", "0", "-", "0", "0/s", "-", "-"],
    ]
    # While user code runs its requests are shown by name. In the place of targets, which it has not.
    code = msgspec.structs.replace(TICK, targets=[], inner_requests=TARGETS)
    heads, *rows = list_texts(build_live_targets(code, most=3))
    assert heads[0] == "name"
    assert [row[0] for row in rows] == ["item", "buy", "pay"]
    assert list(describe_worst_target(code)) == ["worst request buy ok 86.36 % p99 20.0 ms"]
    # A line names the worst target.
    assert list(describe_worst_target(TICK)) == ["worst target buy ok 86.36 % p99 20.0 ms"]
    calm = msgspec.structs.replace(TICK, targets=[TARGETS[0], TARGETS[2]])
    assert list(describe_worst_target(calm)) == ["worst target item ok 100 % p99 9.00 ms"]
    assert list(describe_worst_target(msgspec.structs.replace(TICK, targets=TARGETS[2:]))) == []


def test_the_phases_of_a_run_have_what_its_load_has() -> None:
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
    # The phases of a run with a rate have its plan and all three times.
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
    # Stages of concurrency are planned in flight. Such a run has no due times.
    load = parse_spec(Source("spec", {"url": "http://h/", "stages": ["up=2s:0..50", "hold=8s:50"]}))
    phases = [make_phase(name="up", begin_s=0.0), make_phase(name="hold")]
    heads, *rows = list_texts(build_phases(build_summary(phases=phases), load))
    place = heads.index("planned")
    assert [row[place] for row in rows] == ["0 to 50 in flight", "50 in flight"]
    # A run of one phase has no rows. The account says it all.
    assert build_phases(build_summary()).rows == []
