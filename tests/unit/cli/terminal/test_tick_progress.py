from collections.abc import Callable

import msgspec
import pytest

from oku_cli.terminal.plain import build_line
from oku_cli.terminal.tick_progress import has_open_end, may_end_early, measure_progress
from oku_cli.terminal.trend import TrendTracker
from oku_core.results.tick import Tick
from oku_core.spec.spec import OPEN_END

MakeTick = Callable[..., Tick]


@pytest.fixture
def timed(make_tick: MakeTick) -> Tick:
    """A second of a run that has been active for 15 of its 60 seconds."""
    tick = make_tick(requests_total=OPEN_END)
    return msgspec.structs.replace(tick, clock_s=15.0, length_s=60.0)


def test_the_progress_of_a_run_is_in_requests(make_tick: MakeTick) -> None:
    """It is known how many it has."""
    assert not has_open_end(make_tick())
    assert measure_progress(make_tick()) == (400_000, 412_345, 1_000_000)


def test_the_progress_of_a_run_that_a_time_ends_is_in_time(timed: Tick) -> None:
    """Nobody knows how many requests it will have."""
    assert has_open_end(timed)
    assert measure_progress(timed) == (15_000, 15_000, 60_000)


def test_a_line_names_no_total_where_there_is_none(timed: Tick) -> None:
    """The percentage and the time left are those of the time."""
    line = build_line(timed, TrendTracker().add(timed))
    assert line.startswith("running 412,345 (25.0 %, 400,000 accounted)")
    assert line.endswith(" left 45 s")


@pytest.mark.parametrize(
    ("clock_s", "progress"),
    [(15.0, (400_000, 412_345, 1_000_000)), (30.0, (30_000, 30_000, 60_000))],
)
def test_the_progress_of_a_run_with_a_number_and_a_time_is_that_of_the_nearer_end(
    make_tick: MakeTick, clock_s: float, progress: tuple[int, int, int]
) -> None:
    """Whichever comes first ends it, so it has at most that number."""
    tick = msgspec.structs.replace(make_tick(), clock_s=clock_s, length_s=60.0)
    assert may_end_early(tick)
    assert measure_progress(tick) == progress
    assert "412,345/at most 1,000,000" in build_line(tick, TrendTracker().add(tick))


def test_the_progress_of_a_run_with_a_rate_is_in_requests(make_tick: MakeTick) -> None:
    """Its number is known, and with `late: send` it may take longer than its time."""
    tick = msgspec.structs.replace(make_tick(requests_planned=100), clock_s=59.0, length_s=60.0)
    assert not may_end_early(tick)
    assert measure_progress(tick) == (400_000, 412_345, 1_000_000)
