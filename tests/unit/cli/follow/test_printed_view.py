import pytest

from oku_cli.follow.printed_view import PrintedView, describe_rest
from oku_cli.live.plain import View
from oku_core.messaging.printed import PrintedLine, PrintedSummary


def build_printed(shown: int, count: int, **files: str) -> PrintedSummary:
    """So many lines, of which the first are shown."""
    lines = [PrintedLine(worker="w1", text=f"line {number}") for number in range(shown)]
    return PrintedSummary(lines=lines, count=count, files=files)


def test_each_line_is_shown_once_and_the_rest_has_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    """Without progress, too, and on standard error: standard output may be JSON."""
    view = PrintedView(View())
    for printed in (None, build_printed(1, 1), build_printed(1, 1), build_printed(3, 3), build_printed(0, 0)):
        view.show(printed)
        view.show_rest(printed)
    assert capsys.readouterr() == ("", "w1: line 0\nw1: line 1\nw1: line 2\n")
    view.show_rest(build_printed(20, 21, w1="/tmp/a.txt"))
    assert capsys.readouterr().err == "user code printed 1 more line: /tmp/a.txt (w1)\n"
    many = build_printed(20, 5_020, w1="/a", w2="/b", w3="/c", w4="/d")
    assert describe_rest(many) == "user code printed 5,000 more lines: /a (w1), /b (w2), /c (w3) and 1 more"
    assert describe_rest(build_printed(20, 22)) == "user code printed 2 more lines"
