from collections.abc import Callable
from typing import Any

import pytest
from tests.kit.outcomes import make_counts

from oku_cli.terminal.frame import SeenTick, build_frame, build_sparkline
from oku_cli.terminal.trend import SHOWN_TICKS, TrendTracker
from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.results.tick import Tick

MakeTick = Callable[..., Tick]
Draw = Callable[..., list[str]]


def build_latency(*values_us: int) -> HistogramSnapshot:
    """Build a snapshot of these latencies."""
    histogram = Histogram()
    for value_us in values_us:
        histogram.record(value_us)
    return histogram.build_latency()


@pytest.fixture
def draw(make_tick: MakeTick, render: Callable[..., list[str]]) -> Draw:
    """Gives the lines of the frame after three equal ticks."""

    def draw_frame(
        width: int = 80, silent_s: float = 0.0, title: str = "run 6f2c1a", **changes: Any
    ) -> list[str]:
        tracker, tick = TrendTracker(), make_tick(**changes)
        trend = [tracker.add(tick) for _ in range(3)][-1]
        return render(
            build_frame(title, SeenTick(tick=tick, trend=trend, seen_at_s=7.0), 7.0 + silent_s), width
        )

    return draw_frame


def test_the_frame_shows_how_the_run_goes(draw: Draw) -> None:
    """Title, state, account, rates, latencies, times and outcomes are in their usual places."""
    assert [" ".join(line.split()) for line in draw() if "━" not in line] == [
        "",
        "run 6f2c1a running · 100 % ok",
        "",
        "412,345 of 1,000,000 ended, 400,000 accounted",
        "",
        "rate 16,340/s p50 1.70 ms",
        "average 16,494/s p99 6.04 ms",
        "in flight 2,000 elapsed 25 s",
        "workers 2 left 36 s",
        "last minute ▆▆▆",
        "",
        "outcomes ok 412,345",
    ]


def test_what_a_title_says_of_target_and_load_stands_below_the_name(draw: Draw) -> None:
    """The share that was ok stands beside the name, and is never rounded up to all."""
    frame = draw(
        title="soak · http://h/{i} · 5/s for 10 s", outcomes_so_far=make_counts(9_999_999, timeout=1)
    )
    assert frame[1].split() == ["soak", "running", "·", ">", "99.99", "%", "ok"]
    assert frame[2].strip() == "http://h/{i} · 5/s for 10 s"


def test_the_bar_is_solid_for_what_is_accounted_and_hatched_for_what_has_ended(draw: Draw) -> None:
    """The parts are told apart by shape, not by colour alone, and the percentage is that of the account."""
    bar = next(line for line in draw(accounted=500_000, done=750_000) if "━" in line)
    cells = bar.split()[0]
    assert len(cells) == 69
    assert (cells.count("━"), cells.count("╍"), cells.count("─")) == (34, 17, 18)
    assert bar.rstrip().endswith("75.0 %")


def test_the_bar_is_full_only_when_all_is_accounted(draw: Draw) -> None:
    """One missing request of a hundred million leaves a cell empty."""
    frame = "\n".join(draw(requests_total=100_000_000, accounted=99_999_999, done=99_999_999))
    assert "─" in frame
    assert "99.9 %" in frame
    frame = "\n".join(draw(requests_total=100_000_000, accounted=100_000_000, done=100_000_000))
    assert "─" not in frame
    assert "100.0 %" in frame


def test_problems_and_resends_are_shown_once_there_are_any(draw: Draw) -> None:
    """Outcomes that did not occur are left out, and so is a zero of resends."""
    calm = "\n".join(draw())
    assert "timeout" not in calm
    assert "resent" not in calm
    troubled = "\n".join(
        draw(outcomes_so_far=make_counts(412_000, timeout=340, protocol_error=5), resent_at_most=1234)
    )
    assert "timeout 340" in troubled
    assert "protocol error 5" in troubled
    assert "connect error" not in troubled
    assert "at most 1,234" in troubled


def test_what_a_run_waits_for_stands_under_the_account(draw: Draw) -> None:
    """Each notice has a line of its own and is complete."""
    frame = draw(notices=["waiting for workers: 0 of 4 connected: [1] " + "word " * 20, "Loki: 503"])
    at = next(number for number, line in enumerate(frame) if "accounted" in line)
    text = " ".join(line.strip() for line in frame[at + 1 : at + 4])
    assert text == "waiting for workers: 0 of 4 connected: [1] " + "word " * 20 + "Loki: 503"
    assert frame[at + 4].strip() == ""
    assert "waiting" not in "\n".join(draw())


def test_before_the_first_tick_the_run_starts(render: Callable[..., list[str]]) -> None:
    """There are no numbers yet."""
    assert [line.split() for line in render(build_frame("run 6f2c1a", None, 0.0))] == [
        [],
        ["run", "6f2c1a", "starting"],
    ]


def test_a_frame_without_news_says_so(draw: Draw) -> None:
    """Old numbers cannot be mistaken for new ones."""
    assert "no news" not in "\n".join(draw(silent_s=4.9))
    assert "running · 100 % ok, no news for 12 s" in "\n".join(draw(silent_s=12.3))


def test_a_paused_run_without_answers_has_dashes(draw: Draw) -> None:
    """A missing latency or estimate is a dash, not a zero."""
    frame = draw(state=RunState.PAUSED, rate_rps=0.0, in_flight=0, times={})
    values = {tuple(line.split()[-2:]) for line in frame if line.strip()}
    assert {("p50", "-"), ("p99", "-"), ("left", "-")} <= values
    assert "paused" in frame[1]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_frame_fits_the_terminal(draw: Draw, width: int) -> None:
    """No line is wider than the terminal or than 100 columns, whatever the numbers."""
    frame = draw(
        width,
        title="run " + "x" * 300,
        requests_total=100_000_000,
        accounted=98_765_432,
        done=100_000_000,
        rate_rps=1_234_567.8,
        in_flight=1_280_000,
        outcomes_so_far=[91_234_567, *[1_234_567] * 9],
        resent_at_most=1_234_567,
        active_s=360_000.0,
        times={Time.LATENCY: build_latency(123_456_000, 3_600_000_000)},
        workers=1000,
    )
    assert max(len(line) for line in frame) <= min(width, 100)


def test_at_80_columns_no_number_is_cut(draw: Draw) -> None:
    """A hundred million requests fit with every line that may appear."""
    frame = "\n".join(
        draw(
            requests_total=100_000_000,
            accounted=98_765_432,
            done=98_765_432,
            outcomes_so_far=[91_234_567, *range(1_234_567, 1_234_576)],
        )
    )
    assert "…" not in frame
    assert "98,765,432 accounted" in frame
    assert all(f"1,234,5{last}" in frame for last in (67, 68, 69, 70, 71))


def test_the_sparkline_is_on_a_scale_from_nothing() -> None:
    """A stall is at the bottom and the largest rate at the top; a run that does nothing is flat."""
    assert build_sparkline([0.0, 50.0, 100.0, 100.0]) == "▁▄▆▆"
    assert build_sparkline([7.0]) == "▆"
    assert build_sparkline([0.0, 7.0, 0.0]) == "▁▆▁"
    assert build_sparkline([0.0, 0.0]) == "▁▁"
    assert build_sparkline([]) == ""
    assert build_sparkline([50.0, None, None, 100.0, 100.0]) == "▄  ▆▆"
    assert build_sparkline([None]) == " "
    assert len(build_sparkline([1.0] * SHOWN_TICKS)) == SHOWN_TICKS


def test_a_burst_does_not_flatten_the_sparkline() -> None:
    """Progress that a broker held up arrives within one second."""
    assert build_sparkline([100.0, 50.0, 100.0, 100.0, 0.0, 0.0, 0.0, 400.0, 100.0]) == "▆▄▆▆▁▁▁▆▆"
    assert build_sparkline([98.0, 2.0, 99.0, 1.0, 100.0, 0.0, 97.0, 3.0]) == "▆▁▆▁▆▁▆▁"


def test_a_number_that_is_too_wide_for_two_columns_stands_in_one(draw: Draw) -> None:
    """There is room for two columns, but this number is wider than its column."""
    lines = draw(requests_total=10**15, accounted=10**15, done=10**15, rate_rps=1e15, active_s=1.0)
    assert any("1,000,000,000,000,000/s" in line for line in lines)
