import io
from collections.abc import Callable

import pytest

from oku_cli.live.live_view import LiveView
from oku_cli.live.plain import PlainView
from oku_cli.live.screen import QuietView, View, build_view
from oku_cli.terminal.console import Terminal
from oku_core.summary.tick import Tick


@pytest.mark.parametrize(
    ("is_terminal", "term", "quiet", "view_type"),
    [
        (True, "xterm", False, LiveView),
        (True, "dumb", False, PlainView),
        (False, "xterm", False, PlainView),
        (True, "xterm", True, QuietView),
        (False, "xterm", True, QuietView),
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
