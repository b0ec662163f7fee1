from typing import Any

import msgspec
import pytest

from oku_cli.views.replay_view import (
    ShownAnswer,
    ShownInner,
    ShownIteration,
    ShownIterationOutcome,
    ShownOutcome,
    ShownRequest,
    print_iteration,
    print_iteration_outcome,
    print_outcome,
    print_request,
)
from oku_core.accounting.outcome import Outcome

REQUEST = ShownRequest(
    run="r1", index=7, target="buy", url="http://h/7", line="POST /7 HTTP/1.1",
    headers=[("Host", "h")], body="a\nb", body_bytes=3, row={"sku": "x", "n": "1"},
)  # fmt: skip


def build_outcome(**changes: Any) -> ShownOutcome:
    """What came of it."""
    fields: dict[str, Any] = {
        "status": 200, "line": "HTTP/1.1 200 OK", "headers": [("A", "b")], "body": "hi", "body_bytes": 2,
        "is_whole": True,
    }  # fmt: skip
    answer = ShownAnswer(**(fields | changes))
    return ShownOutcome(outcome=Outcome.FAILED_CHECK, reason="check body", time_ms=1.7, answer=answer)


def test_a_request_and_its_answer_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """And then as it goes out."""
    print_request(REQUEST)
    assert capsys.readouterr().out.splitlines() == [
        "Request 7 of run r1 asks target buy: http://h/7", "Row: sku=x, n=1", "",
        "POST /7 HTTP/1.1", "Host: h", "", "a", "b",
    ]  # fmt: skip
    # A body that is not text is printed as its size. A terminal must not get it.
    print_request(msgspec.structs.replace(REQUEST, body=None, body_bytes=1200))
    assert capsys.readouterr().out.splitlines()[-1] == "(1,200 bytes that are not text)"
    # An answer is printed with what it counts as. In the words of the account.
    print_outcome(build_outcome())
    assert capsys.readouterr().out.splitlines() == [
        "", "HTTP/1.1 200 OK", "A: b", "", "hi", "", "failed check: check body, after 1.70 ms",
    ]  # fmt: skip
    cases: list[tuple[dict[str, Any], str]] = [
        ({"body": None, "body_bytes": 1234}, "(1,234 bytes that are not text)"),
        ({"is_whole": False, "body_bytes": 99_999}, "(this is the beginning; 99,999 bytes came)"),
    ]
    for changes, said in cases:
        # What is not shown of a body is said. Nobody takes the beginning for all of it.
        print_outcome(build_outcome(**changes))
        assert said in capsys.readouterr().out.splitlines()
    # Without an answer there is an outcome. Control characters of a target do not reach the terminal.
    print_outcome(
        ShownOutcome(outcome=Outcome.CONNECT_ERROR, reason="refused\x1b[2J", time_ms=None, answer=None)
    )
    assert capsys.readouterr().out == "\nconnect error: refused␛[2J\n"


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


def test_an_iteration_is_printed_with_what_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Text of others cannot move the cursor."""
    print_iteration(
        ShownIteration(run="r1", index=7, scenario="a.py", engine="python", row={"sku": "s\x1b7"})
    )
    assert capsys.readouterr().out.splitlines() == ["Iteration 7 of run r1: a.py", "Row: sku=s␛7"]
    # What came of an iteration is said last. With how long it took, if it ended by itself.
    assert read(capsys) == ["", "ok, after 2.50 ms"]
    assert read(capsys, outcome=Outcome.EXCEPTION, reason="E: x", time_ms=None, traceback="T:\n  f\n") == [
        "", "T:", "  f", "", "exception: E: x",
    ]  # fmt: skip
    # Its requests come by name. Those of one name together.
    several = ShownInner(
        name="buy", requests=3, ok=2, statuses={"200": 2, "503": 1}, bytes_received=0, longest_ms=0.0,
        reasons=["status 503"],
    )  # fmt: skip
    assert read(capsys, requests=[INNER, several])[1:3] == [
        "login: ok, 200, 1.70 ms, 1.2 kB",
        "3 times buy: 2 of 3 ok, 200, 503, 0 B, status 503",
    ]
