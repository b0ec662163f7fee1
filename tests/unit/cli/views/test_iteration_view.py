from typing import Any

import pytest

from oku_cli.views.iteration_view import (
    ShownInner,
    ShownIteration,
    ShownIterationOutcome,
    print_iteration,
    print_iteration_outcome,
)
from oku_core.accounting.outcome import Outcome

INNER = ShownInner(
    name="login", requests=1, ok=1, statuses={"200": 1}, bytes_received=1200, longest_ms=1.7, reasons=[]
)


def read(capsys: pytest.CaptureFixture[str], **changes: Any) -> list[str]:
    """The lines of an outcome."""
    fields: dict[str, Any] = {
        "outcome": Outcome.OK,
        "reason": "",
        "time_ms": 2.5,
        "traceback": "",
        "requests": [],
    }
    print_iteration_outcome(ShownIterationOutcome(**fields | changes))
    return capsys.readouterr().out.splitlines()


def test_an_iteration_is_named_with_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Text of others cannot move the cursor."""
    print_iteration(
        ShownIteration(run="r1", index=7, scenario="a.py", engine="python", row={"sku": "s\x1b7"})
    )
    assert capsys.readouterr().out.splitlines() == ["Iteration 7 of run r1: a.py", "Row: sku=s␛7"]


def test_what_came_of_it_is_said_last(capsys: pytest.CaptureFixture[str]) -> None:
    """With how long it took, if it ended by itself."""
    assert read(capsys) == ["", "ok, after 2.50 ms"]
    assert read(capsys, outcome=Outcome.EXCEPTION, reason="E: x", time_ms=None, traceback="T:\n  f\n") == [
        "", "T:", "  f", "", "exception: E: x",
    ]  # fmt: skip


def test_its_requests_come_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of one name together."""
    several = ShownInner(
        name="buy", requests=3, ok=2, statuses={"200": 2, "503": 1}, bytes_received=0, longest_ms=0.0,
        reasons=["status 503"],
    )  # fmt: skip
    assert read(capsys, requests=[INNER, several])[1:3] == [
        "login: ok, 200, 1.70 ms, 1.2 kB",
        "3 times buy: 2 of 3 ok, 200, 503, 0 B, status 503",
    ]
