import io
from collections.abc import Callable, Iterator

import pytest

from oku_cli.live.live_view import LiveView
from oku_cli.terminal.console import Terminal
from oku_core.summary.tick import Tick

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


def test_a_tick_is_drawn_at_the_next_redraw(terminal: Screen, make_tick: MakeTick) -> None:
    """Taking it in writes nothing and waits for nobody."""
    before = terminal.file.getvalue()
    terminal.view.show_tick(make_tick())
    assert terminal.file.getvalue() == before
    drawn = terminal.redraw()
    assert "running" in drawn
    assert "400,000" in drawn


def test_a_redraw_replaces_the_lines_in_place(terminal: Screen, make_tick: MakeTick) -> None:
    """The cursor moves up over the last frame; the screen is never cleared, so that nothing flickers."""
    terminal.view.show_tick(make_tick())
    drawn = terminal.redraw()
    again = terminal.redraw()
    assert again.count("\x1b[1A") == drawn.rstrip("\n").count("\n")
    assert "\x1b[2J" not in again


def test_a_line_of_log_stands_above_the_frame(terminal: Screen, make_tick: MakeTick) -> None:
    """It is written before the frame is drawn again, and its brackets stay as they are."""
    terminal.view.show_tick(make_tick())
    terminal.redraw()
    before = len(terminal.file.getvalue())
    terminal.view.log("worker-1 died (signal 9), started again [4711]")
    sent = terminal.file.getvalue()[before:]
    assert sent.index("started again [4711]") < sent.index("400,000")


def test_silence_of_the_coordinator_is_noticed(terminal: Screen, make_tick: MakeTick) -> None:
    """The view's own clock tells that no ticks come."""
    terminal.view.show_tick(make_tick())
    terminal.now_s += 9
    assert "no news for 9 s" in terminal.redraw()


def test_stopping_leaves_the_console_as_it_was(terminal: Screen, make_tick: MakeTick) -> None:
    """The cursor is shown again, a second stop does nothing, and the log may go on."""
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
