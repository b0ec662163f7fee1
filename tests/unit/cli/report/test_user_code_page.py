"""The report of a run of user code."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.kit.runs.summaries import make_inner
from tests.unit.cli.report.conftest import Page, make_sample
from tests.unit.cli.views.user_code_run import TRACEBACK, build_user_code_run

from oku_cli.report.history_reader import RunHistory, read_load
from oku_cli.report.page import build_page
from oku_cli.report.summary_sections import build_failure_section, build_name_section, build_outcome_section
from oku_core.accounting.outcome import Outcome
from oku_core.spec.spec import Engine
from oku_core.summary.request_summary import FailureSummary
from oku_core.summary.summary import Summary

MakeHistory = Callable[..., RunHistory]
MakeSummary = Callable[..., Summary]
SCENARIO = f"a.py@sha256:{'0' * 64}:9:a.py"
SPEC: dict[str, Any] = {"engine": "python", "scenario": SCENARIO, "users": 50, "requests": 1000}


def read(section: str | None) -> Page:
    """A section, as a browser takes it."""
    assert section is not None
    page = Page(section.replace("<", " <"))
    assert page.faults == []
    return page


def test_the_page_speaks_of_iterations(make_history: MakeHistory) -> None:
    """In charts, too; the requests by name alone are requests, and the space has its name."""
    history = make_history(
        build_user_code_run(), spec=SPEC, samples=[make_sample(1, [1000] * 9), make_sample(2, [1000] * 9)]
    )
    page = build_page(history)
    assert "1,000</strong> of 1,000 iterations accounted" in page
    assert "iterations per second" in page
    text = Page(page.partition("<h2>Spec")[0].replace("<", " <")).text
    found = {" ".join(each.split()) for each in re.findall(r"\w+\s+requests?\b\s*\w*", text, re.IGNORECASE)}
    assert {each.lower() for each in found} <= {
        "the request space", "its requests again", "name requests ok", "reason requests buy",
        "start requests by", "s requests by",
    }  # fmt: skip


def test_requests_by_name_are_a_table(make_history: MakeHistory) -> None:
    """With what failed of them in a second one."""
    page = read(build_name_section(build_user_code_run()))
    assert len(page.find("table")) == 2
    assert "buy unexpected status status 503 5" in " ".join(page.text.split())
    assert page.text.index("They stand beside the account") < page.text.index("buy")
    assert build_name_section(build_user_code_run(inner_requests=[])) is None
    assert "reason" not in read(build_name_section(build_user_code_run(inner_requests=[make_inner()]))).text
    assert 'id="inner-requests"' in build_page(make_history(build_user_code_run(), spec=SPEC))


def test_a_traceback_is_there_as_a_whole(make_summary: MakeSummary) -> None:
    """It is folded, and its markup is text."""
    page = read(build_failure_section(build_user_code_run()))
    assert page.find("details")
    assert TRACEBACK in page.text
    heads = " ".join(page.text.split())
    assert "outcome reason iterations share first index last index" in heads
    assert "request of the first" not in heads
    # Failures of requests have the first one. Where it is known.
    failure = FailureSummary(outcome=Outcome.TIMEOUT, reason="r", requests=1, sample="GET http://h/")
    page = read(build_failure_section(make_summary(failures=[failure])))
    assert "request of the first" in page.text
    assert "GET http://h/" in page.text
    assert not page.find("details")


def test_only_outcomes_of_iterations_are_said_not_to_have_occurred() -> None:
    """Others cannot; and an iteration has no status."""
    text = read(build_outcome_section(build_user_code_run(), read_load(SPEC))).text
    assert "Did not occur: timeout, failed check." in text
    assert "Iterations by outcome" in text
    assert "status" not in text


@pytest.mark.parametrize("given", [{"users": 50}, {"concurrency": 50}])
def test_the_load_of_user_code_is_understood(given: dict[str, int]) -> None:
    """With its users, by either name."""
    load = read_load({**{key: SPEC[key] for key in ("engine", "scenario", "requests")}, **given})
    assert load is not None
    assert (load.engine, load.requests, load.concurrency) == (Engine.PYTHON, 1000, 50)
