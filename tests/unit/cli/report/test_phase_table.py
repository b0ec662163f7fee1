from collections.abc import Callable
from typing import Any

import msgspec
from tests.unit.cli.conftest import make_outcomes
from tests.unit.cli.report.conftest import Page

from oku_cli.report.load import read_load
from oku_cli.report.phase_table import build_phases
from oku_cli.report.run_history import RunHistory
from oku_core.results.summary import Summary
from oku_core.results.timing_summary import LatencySummary

MakeHistory = Callable[..., RunHistory]


def list_cells(summary: Summary, load: dict[str, object]) -> list[str]:
    """List what the table of phases says, word by word."""
    section = build_phases(summary, read_load(load))
    assert section is not None
    page = Page(section.replace("<", " <"))
    assert page.faults == []
    return page.text.split()


def test_a_run_of_one_phase_has_no_table(make_summary: Callable[..., Summary]) -> None:
    """The account says it all."""
    assert build_phases(make_summary(), None) is None


def test_each_phase_has_its_plan_and_what_came_of_it(make_open_history: MakeHistory) -> None:
    """Requests, mean rates, and two quantiles of each distribution."""
    summary = make_open_history().summary
    row = "main 2 s to 10 s 804 799 100/s 100/s 97/s" + " 5.00 ms 8.92 ms" * 3
    text = " ".join(list_cells(summary, {"rate": "100/s", "duration": 10, "warm-up": 2}))
    assert "due completed planned/s sent/s completed/s p50 p99 p50 p99 p50 p99" in text
    assert row in text


def test_what_went_wrong_stands_with_its_phase(make_open_history: MakeHistory) -> None:
    """It may be one stage alone that was too much."""
    summary = make_open_history().summary
    outcomes = make_outcomes(ok=700, timeout=60, not_sent=40)
    phases = [summary.phases[0], msgspec.structs.replace(summary.phases[1], outcomes=outcomes)]
    text = " ".join(list_cells(msgspec.structs.replace(summary, phases=phases), {}))
    assert "main 60 timeout, 40 not sent 2 s to" in text


def test_stages_of_concurrency_are_planned_in_flight(make_open_history: MakeHistory) -> None:
    """Such a run has no due times, and only its last request may end it."""
    summary = make_open_history().summary
    none: dict[str, Any] = {
        "response_time_ms": LatencySummary(), "lateness_ms": LatencySummary(),
        "planned_rps": None, "due": None,
    }  # fmt: skip
    first, last = (msgspec.structs.replace(phase, **none) for phase in summary.phases)
    phases = [
        msgspec.structs.replace(first, name="up"),
        msgspec.structs.replace(last, name="hold", end_s=None),
    ]
    summary = msgspec.structs.replace(summary, phases=phases)
    text = " ".join(list_cells(summary, {"stages": ["up=2s:0..50", "hold=8s:50"]}))
    assert "up 0 s to 2 s 199 0 to 50 in flight 100/s 97/s 5.00 ms" in text
    assert "hold 2 s to the end 799 50 in flight 100/s 97/s 5.00 ms" in text
    assert "lateness" not in text


def test_a_phase_that_has_not_begun_has_no_rate(make_open_history: MakeHistory) -> None:
    """Its requests are known beforehand all the same."""
    summary = msgspec.structs.replace(make_open_history().summary, active_s=1.0)
    text = " ".join(list_cells(summary, {"rate": "100/s", "duration": 10, "warm-up": 2}))
    assert "warm-up 0 s to 2 s 204 199 100/s 100/s 97/s" in text
    assert "main 2 s to 10 s 804 799 100/s - - " in text
