from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from rich.console import Group
from tests.kit.histograms import make_latency
from tests.kit.outcomes import make_counts

from oku_cli.live.live_figures import list_causes, list_live_times, list_plan
from oku_cli.live.live_view import SeenTick, build_frame
from oku_cli.live.plain import build_line
from oku_cli.live.trend import TrendTracker
from oku_core.accounting.measured_time import Time
from oku_core.summary.tick import Tick

MakeTick = Callable[..., Tick]
Render = Callable[..., list[str]]


@pytest.fixture
def make_open(make_tick: MakeTick) -> Callable[..., Tick]:
    """Makes a second of a run with a rate, in the stage `soak`, changed as wanted."""

    def make(**changes: Any) -> Tick:
        fields: dict[str, Any] = {
            "phase": "soak",
            "requests_planned": 5_000,
            "requests_sent": 4_990,
            "rate_rps": 4_321.0,
            "clock_bound_s": 0.0,
            "outcomes_so_far": make_counts(412_000, not_sent=340, lost=5),
            "times": {
                Time.LATENCY: make_tick().sample.histogram(Time.LATENCY),
                Time.RESPONSE_TIME: make_latency([*[2_000] * 98, 900_000, 900_000]),
                Time.LATENESS: make_latency([*[40] * 98, 850_000, 850_000]),
            },
        }
        return msgspec.structs.replace(
            make_tick(**fields | changes),
            phase_left_s=75.0, not_sent=[300, 40, 0], clock_s=25.0, length_s=100.0,
        )  # fmt: skip

    return make


def draw(render: Render, tick: Tick, width: int = 80) -> list[str]:
    """The lines of a frame, each with single blanks."""
    seen = SeenTick(tick=tick, trend=TrendTracker().add(tick), seen_at_s=0.0)
    return [" ".join(line.split()) for line in render(build_frame("run 6f2c1a", seen, 0.0), width)]


def test_a_run_with_a_rate_shows_the_plan_beside_what_was_sent(render: Render, make_open: MakeTick) -> None:
    """Phase, rates, the three distributions and the causes have their places."""
    lines = draw(render, make_open())
    at = lines.index("phase soak 75 s left")
    assert [line for line in lines[at:] if line] == [
        "phase soak 75 s left",
        "planned 5,000/s in flight 2,000",
        "sent 4,990/s workers 2",
        "ended 4,321/s elapsed 25 s",
        "average 16,494/s left 75 s",
        "last minute ▆",
        "latency p50 1.70 ms p99 6.04 ms",
        "response time p50 2.00 ms p99 900 ms",
        "lateness p50 40.0 µs p99 850 ms",
        "outcomes ok 412,000 not sent 340 lost 5",
        "not sent in flight cap 300 late 40",
    ]


@pytest.mark.parametrize(
    ("bound_s", "words"),
    [
        (0.0, None),
        (0.0009, None),
        (0.0012, "a worker knows it to within 1.20 ms"),
        (0.0062, "a worker knows it to within 6.20 ms"),
    ],
)
def test_the_bound_of_the_clock_is_shown_where_it_is_notable(
    render: Render, make_open: MakeTick, bound_s: float, words: str | None
) -> None:
    """On one machine it is 0."""
    rows = dict(list_plan(make_open(clock_bound_s=bound_s)))
    assert ("clock" in rows) is (words is not None)
    if words is not None:
        assert [line.strip() for line in render(Group(rows["clock"]))] == [words]


def test_a_run_without_a_rate_has_no_plan(render: Render, make_tick: MakeTick) -> None:
    """It has one distribution, which stands among the figures."""
    tick = make_tick()
    assert not [*list_plan(tick), *list_causes(tick), *list_live_times(tick, TrendTracker().add(tick))]
    text = "\n".join(draw(render, tick))
    assert "planned" not in text
    assert "lateness" not in text
    # A phase that only the last request ends has no time left.
    assert "phase main" in draw(render, make_tick(phase="main"))
    # Stages of concurrency show what is planned to be in flight.
    tick = msgspec.structs.replace(make_tick(phase="stage-1"), planned_in_flight=2_500, phase_left_s=3.0)
    lines = draw(render, tick)
    assert "in flight 2,000 of 2,500 elapsed 25 s" in lines
    assert "phase stage-1 3 s left" in lines


@pytest.mark.parametrize("width", [40, 60])
def test_in_little_room_the_figures_stand_below_each_other(
    render: Render, make_open: MakeTick, width: int
) -> None:
    """No number is cut."""
    lines = draw(render, make_open(), width)
    assert {"planned 5,000/s", "sent 4,990/s", "ended 4,321/s"} <= set(lines)
    assert max(map(len, lines)) <= width


def test_a_line_of_a_run_with_a_rate_has_plan_distributions_and_causes(make_open: MakeTick) -> None:
    """A log of CI is to show why a run misses its rate."""
    tick = make_open(clock_bound_s=0.0062)
    assert build_line(tick, TrendTracker().add(tick)) == (
        "running 412,345/1,000,000 (41.2 %, 400,000 accounted) phase soak planned 5,000/s sent 4,990/s "
        "ended 4,321/s in flight 2,000 ok 412,000 (99.92 %) not_sent 340 lost 5 in_flight_cap 300 late 40 "
        "p50 1.70 ms p99 6.04 ms response time p50 2.00 ms p99 900 ms lateness p50 40.0 µs p99 850 ms "
        "workers 2 clock known to within 6.20 ms left 75 s"
    )
