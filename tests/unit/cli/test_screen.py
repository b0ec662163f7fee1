import io
from collections.abc import Callable

import pytest
from rich.console import Console

from oku_cli.live import LiveView
from oku_cli.plain import PlainView
from oku_cli.screen import QuietView, View, build_view
from oku_core.progress import Tick


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
    """A terminal that can move its cursor gets the live view, all else lines, and --quiet nothing."""
    monkeypatch.setenv("TERM", term)
    console = Console(file=io.StringIO(), force_terminal=is_terminal)
    assert type(build_view(console, quiet=quiet)) is view_type


def test_the_quiet_view_is_silent(make_tick: Callable[..., Tick], capsys: pytest.CaptureFixture[str]) -> None:
    """It takes all that the others take and writes nothing anywhere."""
    file = io.StringIO()
    view = build_view(Console(file=file, force_terminal=True), quiet=True)
    view.start("run 6f2c1a")
    view.show_tick(make_tick())
    view.log("worker-1 died")
    view.stop()
    assert file.getvalue() == ""
    assert capsys.readouterr() == ("", "")
