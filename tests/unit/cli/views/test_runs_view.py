from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import pytest

from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.terminal.console import Terminal
from oku_cli.views.runs_view import ListedRun, build_hints, build_runs_table
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import OPEN_END

Render = Callable[..., list[str]]


def make_row(run: str, created_at: float, name: str = "soak") -> ListedRun:
    """A large run under way."""
    return ListedRun(
        run=run,
        name=name,
        state=RunState.CANCELLING,
        requests=100_000_000,
        accounted=41_234_567,
        ok=41_234_566,
        created_at=created_at,
    )


def test_the_newest_run_comes_first(render: Render) -> None:
    """Each has a line with its state, its account and when it was created."""
    lines = render(
        build_runs_table([make_row("aaaaaa", 1_769_965_512.0), make_row("bbbbbb", 1_769_965_513.0)])
    )
    cells = ["cancelling", "100,000,000", "41,234,567", ">", "99.99", "%", "2026-02-01", "17:05", "soak"]
    assert [line.split() for line in lines] == [
        ["run", "state", "requests", "accounted", "ok", "created", "name"],
        ["bbbbbb", *cells],
        ["aaaaaa", *cells],
    ]
    # A long name is cut and no number.
    lines = render(build_runs_table([make_row("aaaaaa", 0.0, name="[red]" + "x" * 95)]))
    assert max(len(line) for line in lines) <= 80
    assert "41,234,567" in lines[1]
    assert "[red]x" in lines[1]
    assert lines[1].rstrip().endswith("…")
    # The id and a short name can be typed as they are shown.
    row = replace(make_row("261122-201929-84jt", 0.0, name="nightly"), requests=1_000_000, accounted=999_999)
    [_, line] = render(build_runs_table([row]))
    assert "261122-201929-84jt" in line
    assert line.rstrip().endswith("nightly")


def make_rate(run: str) -> ListedRun:
    """A run with a rate, under an id as they are made."""
    load = "5,000/s for 10 min, 3,000,000 requests"
    row = make_row(run, 1_769_965_512.0, name="nightly")
    return replace(
        row, state=RunState.COMPLETED, requests=3_000_000, accounted=3_000_000, ok=3_000_000, load=load
    )


def test_each_run_has_its_target_and_load(render: Render) -> None:
    """Runs with the same load are told apart; both have a line of their own where they do not fit."""
    row = replace(make_rate("261122-201929-84jt"), target="http://10.0.0.1/a")
    short = replace(row, run="3psn", target="a.py", load="9/s for 9 s")
    head, line = render(build_runs_table([short]), 110)
    heads = ["run", "state", "requests", "accounted", "ok", "created", "target", "and", "load", "name"]
    assert head.split() == heads
    assert line.rstrip().endswith("17:05  a.py · 9/s for 9 s  nightly")
    head, line, load = render(build_runs_table([row]), 80)
    assert head.split() == ["run", "state", "requests", "accounted", "created", "name"]
    assert line.split()[-2:] == ["17:05", "nightly"]
    assert load.rstrip() == "  http://10.0.0.1/a · 5,000/s for 10 min, 3,000,000 requests"
    text = "\n".join(line.strip() for line in render(build_runs_table([row]), 50))
    assert text.splitlines()[1:] == [
        "3,000,000 of 3,000,000 accounted",
        "100 % ok",
        "2026-02-01 17:05",
        "http://10.0.0.1/a · 5,000/s for 10 min, 3,000,0…",
        "nightly",
    ]


@pytest.mark.parametrize("width", [50, 100])
def test_a_run_that_a_time_ends_shows_what_is_accounted_and_in_which_time(render: Render, width: int) -> None:
    """It is not known how many requests it will have, and the number that its space allows says nothing."""
    load = "20 in flight for 10 min"
    row = replace(make_row("aaaaaa", 0.0), requests=OPEN_END, accounted=1_234, active_s=250.0, load=load)
    text = "\n".join(render(build_runs_table([row]), width))
    assert "1,234 in 4 min 10 s" in text
    assert "open-ended" in text
    assert "20 in flight for" in text
    assert "1,000,000,000,000,000" not in text


@pytest.mark.parametrize(("ok", "style"), [(1_000, "bold green"), (999, "bold magenta"), (0, "bold red")])
def test_only_a_run_in_which_all_was_ok_is_green(ok: int, style: str) -> None:
    """One in which nothing was ok is red, although it is complete."""
    row = replace(make_rate("a"), accounted=1_000, requests=1_000, ok=ok)
    console = Terminal(file=StringIO(), width=120)
    shown = {segment.text: str(segment.style) for segment in console.render(build_runs_table([row]))}
    assert shown["completed"] == style


def test_nothing_is_cut_for_a_program() -> None:
    """Where the table does not have to fit on a screen, names are whole."""
    output, name = StringIO(), "x" * 95
    Terminal(file=output, width=10_000).print(
        build_runs_table([make_row("aaaaaa", 0.0, name=name)], fits=False)
    )
    assert name in output.getvalue()


def test_without_runs_the_first_step_is_named(render: Render) -> None:
    """An empty table would not help a newcomer."""
    assert [line.rstrip() for line in render(build_runs_table([]))] == [
        "No runs yet. Start one with `oku run`."
    ]


def test_paused_runs_say_what_happened_and_how_to_resume_them() -> None:
    """The newest three are explained: a user who lost a terminal looks here first."""
    paused = replace(make_row("a", 1.0), state=RunState.PAUSED)
    killed = replace(make_row("b", 2.0), state=RunState.PAUSED, reason="stack_lost")
    hints = build_hints([paused, killed, make_row("c", 3.0)], InterruptHints(["--data-dir", "d"]))
    assert hints == [
        (
            "b was interrupted: its processes were killed; what is accounted is kept; "
            "resume it with: oku resume b --data-dir d"
        ),
        (
            "a is paused: nothing is in flight; what is accounted is kept; "
            "resume it with: oku resume a --data-dir d"
        ),
    ]
    assert len(build_hints([paused] * 9, InterruptHints())) == 3
