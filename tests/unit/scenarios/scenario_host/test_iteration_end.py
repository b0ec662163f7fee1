from pathlib import Path

import pytest

from oku.http.response import RequestError
from oku.scenario_host.iteration_end import End, judge_exception, judge_return

FOLDER = Path("/nowhere")
EXCEPTION, FAILED_CHECK = 9, 8
REQUEST = RequestError("page", "status 500")


def test_one_that_comes_to_its_end_is_ok_unless_something_failed() -> None:
    """The first failure is its reason."""
    assert judge_return("") == End(0)
    assert judge_return("page: status 500") == End(FAILED_CHECK, "page: status 500")


@pytest.mark.parametrize(
    ("error", "failure", "outcome", "reason"),
    [
        (REQUEST, "", FAILED_CHECK, "page: status 500"),
        (REQUEST, "first: refused", FAILED_CHECK, "first: refused"),
        (AssertionError("no tea"), "", FAILED_CHECK, "no tea"),
        (AssertionError("no tea"), "first: refused", FAILED_CHECK, "first: refused"),
        (KeyError("tea"), "first: refused", EXCEPTION, "KeyError: 'tea'"),
        (TimeoutError(), "", EXCEPTION, "TimeoutError"),
        (SystemExit(3), "", EXCEPTION, "SystemExit: 3"),
        (ExceptionGroup("two", [REQUEST, AssertionError("no tea")]), "", FAILED_CHECK, "page: status 500"),
        (ExceptionGroup("a", [ExceptionGroup("b", [REQUEST])]), "", FAILED_CHECK, "page: status 500"),
        (
            ExceptionGroup("two", [REQUEST, KeyError("tea")]),
            "",
            EXCEPTION,
            "ExceptionGroup: two (2 sub-exceptions)",
        ),
    ],
)
def test_what_ends_an_iteration(error: BaseException, failure: str, outcome: int, reason: str) -> None:
    """Requests and assertions are checks, everything else is an exception, and has a traceback."""
    end = judge_exception(error, failure, FOLDER)
    assert (end.outcome, end.reason) == (outcome, reason)
    assert bool(end.traceback) == (outcome == EXCEPTION)
