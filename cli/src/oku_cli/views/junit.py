"""The summary of a run as JUnit XML, for the page of tests that Jenkins, GitLab and others show.

There is one test case for each threshold, one for each flag of validity, and three for the run itself, so
that a page of tests is red exactly if the exit code is not 0.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

from oku_cli.terminal.ci_commands import escape_marks_in_markup
from oku_cli.views.exit_reasons import ExitReason, describe_nothing_ok
from oku_core.accounting.run_state import RunState
from oku_core.summary.summary import Summary
from oku_core.summary.validity import Flag
from oku_core.tables.formatting import in_units
from oku_core.tables.threshold_tables import describe_standing
from oku_core.thresholds.threshold_summary import ThresholdVerdict


class _Case(NamedTuple):
    """A test case; its result is `failure`, `error` or `skipped`, or empty if it has passed."""

    group: str
    name: str
    result: str = ""
    text: str = ""


def build_junit(
    summary: Summary, *, allows_undecided: bool = False, lost_output: Sequence[str] = ()
) -> bytes:
    """Build the file of a run at rest; an undecided threshold that is allowed counts as skipped."""
    cases = [*_iter_cases(summary, allows_undecided=allows_undecided), _judge_output(lost_output)]
    started_at = re.sub(r"(\.\d+)?Z$", "", summary.started_at or "")  # own text: a time of the ledger
    started = {"timestamp": started_at} if started_at else {}
    head = {"name": summary.name or summary.run, "time": f"{summary.active_s:.3f}", **started}
    return _build_file(head, list(_iter_properties(summary)), cases)


def build_unfinished_junit(reason: ExitReason) -> bytes:
    """Build the file of a command that has no summary, because it ended before its run was at rest."""
    case = _Case("run", "completed", "error", reason.text)
    return _build_file({"name": "oku", "time": "0"}, [("exit code", f"{reason.code:d}")], [case])


def _build_file(
    head: Mapping[str, str], properties: Sequence[tuple[str, str]], cases: Sequence[_Case]
) -> bytes:
    """Build the file from the attributes of its only suite, some of its properties and its test cases."""
    counts = {
        "tests": len(cases),
        "failures": sum(case.result == "failure" for case in cases),
        "errors": sum(case.result == "error" for case in cases),
        "skipped": sum(case.result == "skipped" for case in cases),
    }
    totals = {key: str(count) for key, count in counts.items()} | {"time": head["time"]}
    # Strict readers want no `skipped` of all suites, and a time without fractions of a second.
    root = ET.Element("testsuites", {"name": "oku", **totals})
    del root.attrib["skipped"]
    suite = ET.SubElement(root, "testsuite", {**head, "name": _clean(head["name"]), **totals})
    listed = ET.SubElement(suite, "properties")
    for key, value in properties:
        ET.SubElement(listed, "property", {"name": key, "value": _clean(value)})
    for case in cases:
        attributes = {"classname": f"oku.{case.group}", "name": _clean(case.name), "time": "0"}
        element = ET.SubElement(suite, "testcase", attributes)
        if case.result:
            kind = {} if case.result == "skipped" else {"type": case.group}
            result = ET.SubElement(element, case.result, {"message": _clean(case.text), **kind})
            result.text = _clean(f"{case.name}: {case.text}")
        elif case.text:
            ET.SubElement(element, "system-out").text = _clean(case.text)
    ET.indent(root)
    text = ET.tostring(root, encoding="utf-8", xml_declaration=True).decode()
    return escape_marks_in_markup(text).encode() + b"\n"


def _iter_cases(summary: Summary, *, allows_undecided: bool) -> Iterator[_Case]:
    yield _judge_end(summary)
    yield _judge_ok(summary)
    # A run that is paused has no verdict yet, and is an error by itself.
    is_open = allows_undecided or summary.state is RunState.PAUSED
    undecided = "skipped" if is_open else "error"
    results = {ThresholdVerdict.FAILED: "failure", ThresholdVerdict.UNDECIDED: undecided}
    for threshold in summary.thresholds:
        text = describe_standing(threshold)
        result = results.get(threshold.verdict, "")
        yield _Case("thresholds", threshold.expression, result, text or str(threshold.verdict))
    raised = {validity.flag: validity.detail for validity in summary.validity}
    for flag in Flag:
        if flag not in raised:
            yield _Case("validity", flag)
        else:
            yield _Case(
                "validity",
                flag,
                "error" if flag is Flag.UNBALANCED else "skipped",
                in_units(raised[flag], summary.unit),
            )


def _judge_end(summary: Summary) -> _Case:
    text = f"the run is {summary.state}" + (f": {summary.reason}" if summary.reason else "")
    return _Case("run", "completed", "" if summary.state == RunState.COMPLETED else "error", text)


def _judge_ok(summary: Summary) -> _Case:
    if wrong := describe_nothing_ok(summary):
        return _Case("run", "something was ok", "failure", wrong)
    counted = in_units("requests", summary.unit)
    text = f"{summary.outcomes.ok:,} of {summary.accounted:,} accounted {counted} were ok"
    return _Case("run", "something was ok", "", text)


def _judge_output(lost: Sequence[str]) -> _Case:
    return _Case("run", "output was written", "error" if lost else "", "; ".join(lost))


def _iter_properties(summary: Summary) -> Iterator[tuple[str, str]]:
    yield "run", summary.run
    yield "state", summary.state
    if summary.verdict is not None:
        yield "verdict", summary.verdict
    if summary.load:
        yield "load", summary.load
    yield in_units("requests", summary.unit), str(summary.requests)
    yield "accounted", str(summary.accounted)
    yield "ok", str(summary.outcomes.ok)
    for inner in summary.inner_requests:
        yield f"requests by name: {_clean(inner.name)}", f"{inner.outcomes.ok} of {inner.requests} ok"


def _clean(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return "".join(character if character.isprintable() else " " for character in text)
