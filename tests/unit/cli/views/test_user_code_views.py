"""A run of user code counts iterations, and every view of it says so."""

from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from tests.kit.runs.summaries import make_outcomes
from tests.unit.cli.views.user_code_run import TRACEBACK, build_user_code_run, make_phase

from oku_cli.views.exit_reasons import describe_failure
from oku_cli.views.junit import build_junit
from oku_cli.views.summary_markdown import build_markdown
from oku_cli.views.summary_view import MOST_TRACEBACK_LINES, build_screen, shorten_traceback
from oku_core.accounting.outcome import Outcome
from oku_core.spec.spec import OPEN_END
from oku_core.summary.request_summary import FailureSummary

Render = Callable[..., list[str]]


def test_the_end_screen_speaks_of_iterations(render: Render) -> None:
    """Only the requests by name are requests."""
    lines = [line.strip() for line in render(build_screen(build_user_code_run(phases=[make_phase("soak")])))]
    text = "\n".join(lines)
    # Requests come first; the time of an iteration, with its pauses, is no latency.
    heads = [line.split()[0] for line in lines if line.startswith(("Requests by", "outcomes", "iteration "))]
    assert heads == ["Requests", "outcomes", "iteration"]
    assert not any(line.startswith("latency") for line in lines)
    assert "1,000 of 1,000 iterations accounted" in lines
    assert "500 iterations/s over 2.0 s" in text
    assert "10 iterations, 1.00 %: iterations that raised or took too long are in no latency" in " ".join(
        lines
    )
    assert [line.split()[:3] for line in lines if line.startswith("phase")] == [["phase", "completed", "ok"]]
    assert [line.split()[:3] for line in lines if line.startswith("worker ")] == [
        ["worker", "iterations", "rate"]
    ]
    told = [line.split()[:2] for line in lines if "request" in line]
    assert told == [["name", "requests"], ["name", "outcome"], ["requests", "again."]]
    # The end screen has the bytes of all requests. Of an iteration none are counted.
    lines = render(build_screen(build_user_code_run()))
    assert [line.split()[1:] for line in lines if "received" in line] == [["26.0", "kB"]]
    # A run that a time ends has iterations too. There is no total before.
    text = " ".join(render(build_screen(build_user_code_run(requests=OPEN_END))))
    assert "1,000 iterations accounted, its time was not up" in " ".join(text.split())
    # The traceback of an exception stands under the failures. Line by line, as Python prints it.
    lines = [line.strip() for line in render(build_screen(build_user_code_run()))]
    at = lines.index("Traceback (most recent call last):")
    assert lines[at + 1 : at + 3] == ['File "a.py", line 3, in scenario', "ValueError: <no>"]


def test_a_long_traceback_is_shortened_at_its_begin() -> None:
    """The end of it says what was raised; no line of it can imitate one of Oku's."""
    traceback = "".join(f"line {number}\x1b[1m\n" for number in range(MOST_TRACEBACK_LINES + 5))
    lines = shorten_traceback(traceback)
    assert lines[0] == "… 5 lines before, which the report has"
    assert lines[1:] == [f"line {number}␛[1m" for number in range(5, MOST_TRACEBACK_LINES + 5)]
    assert shorten_traceback(TRACEBACK) == TRACEBACK.splitlines()


@pytest.mark.parametrize(
    ("outcome", "advice"),
    [
        (Outcome.EXCEPTION, "user code raised an exception in each iteration: its traceback says where"),
        (Outcome.TIMEOUT, "no iteration ended in time: --iteration-timeout says how long one may take"),
        (Outcome.FAILED_CHECK, "in each iteration a request or a check failed: look at the requests by name"),
        (Outcome.LOST, "all workers died: check their logs"),
    ],
)
def test_a_run_of_which_nothing_was_ok_says_what_to_look_at(outcome: Outcome, advice: str) -> None:
    """By what its iterations ended as."""
    assert describe_failure(build_user_code_run(outcomes=make_outcomes(**{outcome: 1000}))) == advice


def test_markdown_speaks_of_iterations_and_has_tracebacks_and_requests() -> None:
    """A traceback is a block of code, in which nothing is Markdown."""
    failures = [
        FailureSummary(outcome=Outcome.EXCEPTION, reason=f"r{n}", requests=1, traceback=TRACEBACK)
        for n in range(2)
    ]
    lines = build_markdown(build_user_code_run(failures=failures)).decode().splitlines()
    assert "| accounted | 1,000 of 1,000 iterations |" in lines
    assert "| outcome | reason | iterations | share | first index | last index |" in lines
    assert lines.count("    ValueError: <no>") == 2
    assert "|  | iteration |" in lines
    at = lines.index("### Requests by name")
    assert at < lines.index("| accounted | 1,000 of 1,000 iterations |")
    assert lines[at + 2 :][:4] == [
        "| name | requests | ok | failed | rate | p50 | p95 | p99 | bytes |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| login | 1,000 | 100 % | 0 | 500/s | 1.50 ms | 15.0 ms | 20.0 ms | 13.0 kB |",
        "| buy | 1,000 | 99.50 % | 5 | 500/s | 1.50 ms | 15.0 ms | 20.0 ms | 13.0 kB |",
    ]
    assert any(
        line.startswith("- unanswered: 10 iterations, 1.00 %: iterations that raised") for line in lines
    )


def test_junit_speaks_of_iterations_and_has_requests_by_name() -> None:
    """Its properties are for whoever reads the page of tests."""
    root = ET.fromstring(build_junit(build_user_code_run()))  # our own file
    properties = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert properties["iterations"] == "1000"
    assert "requests" not in properties
    assert properties["requests by name: buy"] == "995 of 1000 ok"
    texts = [each.text or "" for each in root.iter("system-out")]
    assert "990 of 1,000 accounted iterations were ok" in texts
