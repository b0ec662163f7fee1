import io
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from tests.kit.histograms import make_latency
from tests.kit.outcomes import make_counts

from oku_cli.live.live_view import LiveView, SeenTick, build_frame, build_view
from oku_cli.live.plain import PlainView, View
from oku_cli.live.trend import SHOWN_TICKS, TrendTracker
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.layout import build_sparkline
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.tick import TargetTick, Tick
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

MakeTick = Callable[..., Tick]


class Screen:
    """A live view on a terminal that keeps what it was sent; it redraws when told, the clock stands."""

    def __init__(self) -> None:
        self.file = io.StringIO()
        self.now_s = 100.0
        self.view = LiveView(
            Terminal(file=self.file, width=80, height=40, force_terminal=True),
            clock=lambda: self.now_s,
            redraws_itself=False,
        )

    def redraw(self) -> str:
        """What one more drawing sends."""
        before = len(self.file.getvalue())
        self.view.redraw()
        return self.file.getvalue()[before:]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    """A terminal whose view is started and draws only when told."""
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Screen()
    terminal.view.start("run 6f2c1a")
    yield terminal
    terminal.view.stop()


def test_a_redraw_replaces_the_lines_in_place(terminal: Screen, make_tick: MakeTick) -> None:
    """A tick is drawn at the next redraw; the cursor moves up, and the screen is never cleared."""
    before = terminal.file.getvalue()
    terminal.view.show_tick(make_tick())
    assert terminal.file.getvalue() == before
    drawn = terminal.redraw()
    assert "running" in drawn
    assert "400,000" in drawn
    terminal.view.show_tick(make_tick())
    drawn = terminal.redraw()
    again = terminal.redraw()
    assert again.count("\x1b[1A") == drawn.rstrip("\n").count("\n")
    assert "\x1b[2J" not in again
    # A line of log stands above the frame.
    terminal.view.show_tick(make_tick())
    terminal.redraw()
    length = len(terminal.file.getvalue())
    terminal.view.log("worker-1 died (signal 9), started again [4711]")
    sent = terminal.file.getvalue()[length:]
    assert sent.index("started again [4711]") < sent.index("400,000")
    # Stopping leaves the console as it was.
    terminal.view.show_tick(make_tick())
    terminal.view.stop()
    sent = terminal.file.getvalue()
    assert sent.rindex("\x1b[?25h") > sent.rindex("400,000")
    terminal.view.stop()
    assert terminal.file.getvalue() == sent
    terminal.view.log("done")
    assert terminal.file.getvalue() == f"{sent}done\n"


def test_standard_output_stays_free(terminal: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    """What a program prints there while the view is live, such as JSON, is not drawn by the view."""
    print("{}")  # noqa: T201  # this is the program
    assert capsys.readouterr().out == "{}\n"


Draw = Callable[..., list[str]]


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


def test_the_bar_is_solid_for_what_is_accounted_and_hatched_for_what_has_ended(draw: Draw) -> None:
    """It is full only when all is accounted, and the percentage is that of the account."""
    bar = next(line for line in draw(accounted=500_000, done=750_000) if "━" in line)
    cells = bar.split()[0]
    assert len(cells) == 69
    assert (cells.count("━"), cells.count("╍"), cells.count("─")) == (34, 17, 18)
    assert bar.rstrip().endswith("75.0 %")
    frame = "\n".join(draw(requests_total=100_000_000, accounted=99_999_999, done=99_999_999))
    assert "─" in frame
    assert "99.9 %" in frame
    frame = "\n".join(draw(requests_total=100_000_000, accounted=100_000_000, done=100_000_000))
    assert "─" not in frame
    assert "100.0 %" in frame


def test_what_a_run_waits_for_stands_under_the_account(draw: Draw) -> None:
    """Each notice has a line of its own and is complete."""
    frame = draw(notices=["waiting for workers: 0 of 4 connected: [1] " + "word " * 20, "Loki: 503"])
    at = next(number for number, line in enumerate(frame) if "accounted" in line)
    text = " ".join(line.strip() for line in frame[at + 1 : at + 4])
    assert text == "waiting for workers: 0 of 4 connected: [1] " + "word " * 20 + "Loki: 503"
    assert frame[at + 4].strip() == ""
    assert "waiting" not in "\n".join(draw())


def test_a_frame_without_news_says_so(
    terminal: Screen, make_tick: MakeTick, render: Callable[..., list[str]], draw: Draw
) -> None:
    """Old numbers cannot be mistaken for new ones: the view's own clock counts."""
    terminal.view.show_tick(make_tick())
    terminal.now_s += 9
    assert "no news for 9 s" in terminal.redraw()
    assert [line.split() for line in render(build_frame("run 6f2c1a", None, 0.0))] == [
        [],
        ["run", "6f2c1a", "starting"],
    ]
    assert "no news" not in "\n".join(draw(silent_s=4.9))
    assert "running · 100 % ok, no news for 12 s" in "\n".join(draw(silent_s=12.3))


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
    # What a title says of target and load stands below the name.
    frame = draw(
        title="soak · http://h/{i} · 5/s for 10 s", outcomes_so_far=make_counts(9_999_999, timeout=1)
    )
    assert frame[1].split() == ["soak", "running", "·", ">", "99.99", "%", "ok"]
    assert frame[2].strip() == "http://h/{i} · 5/s for 10 s"
    # A paused run without answers has dashes. A missing latency or estimate is a dash, not a zero.
    frame = draw(state=RunState.PAUSED, rate_rps=0.0, in_flight=0, times={})
    values = {tuple(line.split()[-2:]) for line in frame if line.strip()}
    assert {("p50", "-"), ("p99", "-"), ("left", "-")} <= values
    assert "paused" in frame[1]


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
    # At 80 columns no number is cut. A hundred million requests fit with every line that may appear.
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
    """A stall is at the bottom, the largest rate at the top; a burst does not flatten the rest."""
    assert build_sparkline([0.0, 50.0, 100.0, 100.0]) == "▁▄▆▆"
    assert build_sparkline([7.0]) == "▆"
    assert build_sparkline([0.0, 7.0, 0.0]) == "▁▆▁"
    assert build_sparkline([0.0, 0.0]) == "▁▁"
    assert build_sparkline([]) == ""
    assert build_sparkline([50.0, None, None, 100.0, 100.0]) == "▄  ▆▆"
    assert build_sparkline([None]) == " "
    assert len(build_sparkline([1.0] * SHOWN_TICKS)) == SHOWN_TICKS
    assert build_sparkline([100.0, 50.0, 100.0, 100.0, 0.0, 0.0, 0.0, 400.0, 100.0]) == "▆▄▆▆▁▁▁▆▆"
    assert build_sparkline([98.0, 2.0, 99.0, 1.0, 100.0, 0.0, 97.0, 3.0]) == "▆▁▆▁▆▁▆▁"


def test_the_frame_fits_the_terminal(draw: Draw) -> None:
    """No line is wider than the terminal or than 100 columns, and no number is cut."""
    for width in [40, 80, 200]:
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
            times={Time.LATENCY: make_latency([123_456_000, 3_600_000_000])},
            workers=1000,
        )
        assert max(len(line) for line in frame) <= min(width, 100)
    lines = draw(requests_total=10**15, accounted=10**15, done=10**15, rate_rps=1e15, active_s=1.0)
    assert any("1,000,000,000,000,000/s" in line for line in lines)


def make_threshold(allowed: int) -> ThresholdSummary:
    """One that is the nearer to being lost the fewer requests are allowed to be against it."""
    return ThresholdSummary(
        expression=f"timeout <= {allowed}", verdict=ThresholdVerdict.UNDECIDED, value=0.01, limit=0.1,
        unit=FigureUnit.SHARE, holds=True, against=1, allowed=allowed,
    )  # fmt: skip


def draw_at(tick: Tick, height: int, width: int = 80) -> list[str]:
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
    assert len(draw_at(code, 40)) == len(draw_at(tick, 40))
    short = draw_at(code, 24)
    assert short == [line.replace("target", "name") for line in draw_at(tick, 24)]
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


def test_a_terminal_shows_what_fits(make_tick: MakeTick) -> None:
    """The nearest thresholds come first, then the worst targets; one row counts the others."""
    lines = draw_at(make_busy_tick(make_tick), 60)
    assert [line.split()[0] for line in lines[-22:]] == [
        *(f"t-{place}" for place in range(12)),
        *["timeout"] * 10,
    ]
    assert lines[-10].startswith("timeout <= 11 holds so far 1.00 %; 1 of at most 11 against it")
    lines = draw_at(make_busy_tick(make_tick), 24)
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith(" more thresholds, further from being lost")
    assert lines[-2].startswith("timeout <= 2 holds so far ")
    assert not any(line.startswith("t-") for line in lines)
    lines = draw_at(make_busy_tick(make_tick, thresholds=1), 24)
    assert lines[-1].startswith("timeout <= 2 holds so far ")
    rows = lines[[line.startswith("target ") for line in lines].index(True) + 1 : -1]
    assert [row.split()[0] for row in rows[:2]] == ["t-11", "t-10"]
    assert rows[-1].startswith("and ")


@pytest.mark.heavy
@pytest.mark.parametrize("height", [5, 10, 16, 18, 20, 22, 24, 30, 40, 60])
@pytest.mark.parametrize("width", [50, 80, 120])
def test_the_tables_never_make_the_frame_higher_than_the_terminal(
    make_tick: MakeTick, height: int, width: int
) -> None:
    """However many there are; without them, the frame is as high as it must be."""
    least = max(height, 2 + len(draw_at(make_tick(), 99, width)) + 6)
    draw_at(make_busy_tick(make_tick, targets=100, thresholds=50), least, width)


@pytest.mark.parametrize(
    ("is_terminal", "term", "quiet", "view_type"),
    [
        (True, "xterm", False, LiveView),
        (True, "dumb", False, PlainView),
        (False, "xterm", False, PlainView),
        (True, "xterm", True, View),
        (False, "xterm", True, View),
    ],
)
def test_the_view_suits_the_console(
    monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, term: str, quiet: bool, view_type: type[View]
) -> None:
    """A terminal that can move its cursor gets the live view, all else lines, and --quiet no progress."""
    monkeypatch.setenv("TERM", term)
    console = Terminal(file=io.StringIO(), force_terminal=is_terminal)
    assert type(build_view(console, quiet=quiet)) is view_type


def test_the_quiet_view_is_silent(make_tick: Callable[..., Tick], capsys: pytest.CaptureFixture[str]) -> None:
    """It accepts the same calls as the others, and writes nothing while nothing is wrong."""
    file = io.StringIO()
    view = build_view(Terminal(file=file, force_terminal=True), quiet=True)
    view.start("run 6f2c1a")
    view.show_tick(make_tick())
    view.log("worker-1 died")
    view.stop()
    assert file.getvalue() == ""
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("quiet", [True, False])
def test_what_is_wrong_is_said_to_everybody(*, quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """They stand beside the progress, or on standard error without it: standard output may be JSON."""
    file = io.StringIO()
    view = build_view(Terminal(file=file), quiet=quiet)
    view.warn("the coordinator does not answer")
    assert file.getvalue().endswith("" if quiet else " the coordinator does not answer\n")
    assert capsys.readouterr() == ("", "oku: the coordinator does not answer\n" if quiet else "")
