import io
from collections.abc import Callable

import msgspec
import pytest
from tests.kit.outcomes import make_counts

from oku_cli.terminal.console import Terminal
from oku_cli.terminal.frame import SeenTick, build_frame
from oku_cli.terminal.trend import TrendTracker
from oku_core.results.tick import TargetTick, Tick
from oku_core.spec.values.threshold import FigureUnit
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

MakeTick = Callable[..., Tick]


def make_threshold(allowed: int) -> ThresholdSummary:
    """One that is the nearer to being lost the fewer requests are allowed to be against it."""
    return ThresholdSummary(
        expression=f"timeout <= {allowed}", verdict=ThresholdVerdict.UNDECIDED, value=0.01, limit=0.1,
        unit=FigureUnit.SHARE, holds=True, against=1, allowed=allowed,
    )  # fmt: skip


def draw(tick: Tick, height: int, width: int = 80) -> list[str]:
    """The lines of the frame on a terminal of this size, without the blank ones."""
    console = Terminal(file=io.StringIO(), record=True, width=width, height=height, force_terminal=True)
    seen = SeenTick(tick=tick, trend=TrendTracker().add(tick), seen_at_s=0.0)
    lines = console.render_lines(build_frame("run", seen, 0.0), console.options)
    assert len(lines) < height
    texts = [" ".join("".join(segment.text for segment in line).split()) for line in lines]
    return [text for text in texts if text]


def test_requests_of_user_code_are_fitted_as_targets_are(make_tick: MakeTick) -> None:
    """The worst come first, and the others are counted."""
    tick = make_busy_tick(make_tick, thresholds=0)
    code = msgspec.structs.replace(tick, targets=[], inner_requests=tick.targets)
    assert len(draw(code, 40)) == len(draw(tick, 40))
    short = draw(code, 24)
    assert short == [line.replace("target", "name") for line in draw(tick, 24)]
    assert any(line.startswith("and ") for line in short)


def make_busy_tick(make_tick: MakeTick, *, targets: int = 12, thresholds: int = 10) -> Tick:
    """A second of a run of so many targets, of which the last ones are the worst, and thresholds."""
    return msgspec.structs.replace(
        make_tick(thresholds=[make_threshold(2 + place) for place in reversed(range(thresholds))]),
        targets=[
            TargetTick(name=f"t-{place}", outcomes=make_counts(100 - place, timeout=place), p99_ms=9.0)
            for place in range(targets)
        ],
    )


def test_a_high_terminal_shows_all_targets_and_thresholds(make_tick: MakeTick) -> None:
    """In the order of the spec, with the thresholds at the end."""
    lines = draw(make_busy_tick(make_tick), 60)
    assert [line.split()[0] for line in lines[-22:]] == [
        *(f"t-{place}" for place in range(12)),
        *["timeout"] * 10,
    ]
    assert lines[-10].startswith("timeout <= 11 holds so far 1.00 %; 1 of at most 11 against it")


def test_a_low_terminal_shows_the_nearest_thresholds_before_any_target(make_tick: MakeTick) -> None:
    """A line says how many there are besides."""
    lines = draw(make_busy_tick(make_tick), 24)
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith(" more thresholds, further from being lost")
    assert lines[-2].startswith("timeout <= 2 holds so far ")
    assert not any(line.startswith("t-") for line in lines)


def test_what_thresholds_leave_free_is_for_the_worst_targets(make_tick: MakeTick) -> None:
    """The others have one row together."""
    lines = draw(make_busy_tick(make_tick, thresholds=1), 24)
    assert lines[-1].startswith("timeout <= 2 holds so far ")
    rows = lines[[line.startswith("target ") for line in lines].index(True) + 1 : -1]
    assert [row.split()[0] for row in rows[:2]] == ["t-11", "t-10"]
    assert rows[-1].startswith("and ")


@pytest.mark.parametrize("height", [5, 10, 16, 18, 20, 22, 24, 30, 40, 60])
@pytest.mark.parametrize("width", [50, 80, 120])
def test_the_tables_never_make_the_frame_higher_than_the_terminal(
    make_tick: MakeTick, height: int, width: int
) -> None:
    """However many there are; without them, the frame is as high as it must be."""
    least = max(height, 2 + len(draw(make_tick(), 99, width)) + 6)
    draw(make_busy_tick(make_tick, targets=100, thresholds=50), least, width)
