"""Every view shows foreign text as it is and does not obey it."""

import io
from collections.abc import Callable

import pytest
from rich.console import RenderableType
from tests.kit.runs.summaries import make_worker

from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import run_async
from oku_cli.live.live_view import LiveView, SeenTick, build_frame
from oku_cli.live.plain import PlainView, View
from oku_cli.live.trend import TrendTracker
from oku_cli.process.interrupt import InterruptedAtOnceError
from oku_cli.process.interrupt_hints import build_hint
from oku_cli.process.logs import report_mistake
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.json_output import print_json
from oku_cli.views.runs_view import ListedRun, build_runs_table
from oku_cli.views.summary_view import build_screen
from oku_core.accounting.run_state import RunState
from oku_core.summary.summary import Summary
from oku_core.summary.tick import Tick
from oku_core.summary.validity import Flag, Validity

EVIL = "[red]a[/b] :smile: \x1b[31m\x1b]0;t\x07\x9b2J\u202e\r\nx"
SHOWN = "[red]a[/b] :smile:"
STEERS = "\x1b\x07\x9b\u202e\r\x85\u2028"

MakeTick = Callable[..., Tick]
MakeSummary = Callable[..., Summary]


def show(renderable: RenderableType) -> str:
    """What reaches a wide terminal, but for the sequences that are rich's own."""
    file = io.StringIO()
    Terminal(file=file, width=200, force_terminal=True, color_system=None).print(renderable)
    return file.getvalue()


def test_a_view_shows_what_others_wrote(make_summary: MakeSummary, make_tick: MakeTick) -> None:
    """This holds for its name, reason, notices, workers, statuses and flags, and for the hint."""
    summary = make_summary(
        run=f"1{EVIL}", name=f"2{EVIL}", state=RunState.FAILED, reason=f"3{EVIL}", notices=[f"4{EVIL}"],
        workers=[make_worker(f"5{EVIL}")], statuses={f"6{EVIL}": 1000},
        validity=[Validity(flag=Flag.RESENT, detail=f"7{EVIL}", requests=1)],
    )  # fmt: skip
    shown = " ".join(show(build_screen(summary, hint=f"8{EVIL}")).split())
    assert all(f"{number}{SHOWN}" in shown for number in range(1, 9))
    assert shown.count("␛[31m") == 8
    assert not any(character in shown for character in STEERS)
    # The live area shows what others wrote. This holds for the title and the notices.
    tick = make_tick(notices=[f"2{EVIL}"])
    sample = SeenTick(tick=tick, trend=TrendTracker().add(tick), seen_at_s=0)
    shown = show(build_frame(f"1{EVIL}", sample, 0))
    assert all(f"{number}{SHOWN}" in shown for number in (1, 2))
    assert not any(character in shown for character in STEERS)
    # The list of runs shows what others wrote. This holds for the id and the name.
    row = ListedRun(
        run=f"1{EVIL}", name=f"2{EVIL}", state=RunState.PAUSED, requests=1, accounted=0, ok=0,
        created_at=0, load=f"3{EVIL}",
    )  # fmt: skip
    shown = show(build_runs_table([row], fits=False))
    assert all(f"{number}{SHOWN}" in shown for number in (1, 2, 3))
    assert not any(character in shown for character in STEERS)


def test_lines_beside_the_progress_show_what_others_wrote(make_tick: MakeTick) -> None:
    """Each stays one line, so that none can pass for another."""
    file = io.StringIO()
    view = PlainView(Terminal(file=file), clock=lambda: 0.0)
    view.start(f"1{EVIL}")
    view.log(f"2{EVIL}")
    view.show_tick(make_tick(notices=[f"3{EVIL}"]))
    assert [SHOWN in line for line in file.getvalue().split("\n")] == [True, True, False, True, False]
    assert not any(character in file.getvalue() for character in STEERS)
    # Lines above the live area show what others wrote.
    file = io.StringIO()
    LiveView(Terminal(file=file, width=200, force_terminal=True, color_system=None)).log(EVIL)
    assert file.getvalue().startswith(SHOWN)
    assert file.getvalue().count("\n") == 1


def test_lines_on_standard_error_show_what_others_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    """This holds for mistakes, for errors of a coordinator, and for warnings without progress."""

    async def fail() -> ExitCode:
        raise InterruptedAtOnceError(EVIL)

    report_mistake(EVIL)
    View().warn(EVIL)
    run_async(fail())

    lines = capsys.readouterr().err.split("\n")
    assert [line.startswith(f"oku: {SHOWN}") for line in lines] == [True, True, True, False]
    assert not any(character in line for line in lines for character in STEERS)


def test_json_on_standard_output_steers_no_terminal(
    make_summary: MakeSummary, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`oku show --json` in a terminal is as harmless as without."""
    print_json(make_summary(reason=EVIL))

    written = capfdbinary.readouterr().out.decode()
    assert not any(character in written for character in STEERS)


def test_a_command_to_type_is_quoted_for_the_shell() -> None:
    """A folder with a blank or a bracket in its name is one word."""
    assert build_hint("resume", "r", "--data-dir", "d[/b] x;y") == "oku resume r --data-dir 'd[/b] x;y'"
