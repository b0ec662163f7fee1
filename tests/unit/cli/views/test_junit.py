from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from tests.unit.cli.views.threshold_run import build_threshold_run

from oku_cli.views.junit import build_junit
from oku_core.accounting.run_state import RunState
from oku_core.summary.validity import Flag, Validity


def read(content: bytes) -> dict[str, str]:
    """The result of each test case: empty if it has passed."""
    suite = ET.fromstring(content)[0]  # our own file
    results = {}
    for case in suite.iter("testcase"):
        kinds = [child.tag for child in case if child.tag != "system-out"]
        results[f"{case.get('classname')} {case.get('name')}"] = "".join(kinds)
    counts = {kind: list(results.values()).count(kind[:-1]) for kind in ("failures", "errors")}
    assert suite.get("tests") == str(len(results))
    assert suite.get("failures") == str(counts["failures"])
    assert suite.get("errors") == str(counts["errors"])
    assert suite.get("skipped") == str(list(results.values()).count("skipped"))
    return results


@pytest.mark.parametrize(
    ("changes", "name", "result"),
    [
        ({"state": RunState.CANCELLED, "reason": "x"}, "oku.run completed", "error"),
        (
            {"validity": [Validity(flag=Flag.UNBALANCED, detail="x", requests=1)]},
            "oku.validity unbalanced",
            "error",
        ),
    ],
)
def test_whatever_changes_the_exit_code_is_not_green(changes: dict[str, Any], name: str, result: str) -> None:
    """A run that was cut short, and an account that does not balance."""
    summary = msgspec.structs.replace(build_threshold_run(), **changes)
    assert read(build_junit(summary))[name] == result


def test_a_test_case_for_the_run_for_each_threshold_and_for_each_flag() -> None:
    """A failed threshold is a failure, an undecided one an error, and a raised flag is skipped."""
    results = read(build_junit(build_threshold_run()))
    assert results["oku.run completed"] == results["oku.run something was ok"] == ""
    assert results["oku.thresholds ok >= 99%"] == ""
    assert results["oku.thresholds p99 < 1s"] == "failure"
    assert results["oku.thresholds rate > 1/s over 1m"] == "error"
    flags = {
        name.removeprefix("oku.validity "): result for name, result in results.items() if "validity" in name
    }
    assert set(flags) == set(Flag)
    assert {flag for flag, result in flags.items() if result} == {Flag.RESENT}
    assert flags[Flag.RESENT] == "skipped"
    # What is allowed to be undecided is skipped. As it leaves the exit code as it is.
    results = read(build_junit(build_threshold_run(), allows_undecided=True))
    assert results["oku.thresholds rate > 1/s over 1m"] == "skipped"
    # Nothing that was ok is a failure. Whatever else there is.
    run = build_threshold_run()
    summary = msgspec.structs.replace(run, outcomes=msgspec.structs.replace(run.outcomes, ok=0))
    assert read(build_junit(summary))["oku.run something was ok"] == "failure"
    # Thresholds of a run that is paused have no verdict yet.
    paused = msgspec.structs.replace(build_threshold_run(), state=RunState.PAUSED, verdict=None)
    cases = read(build_junit(paused))
    assert cases["oku.run completed"] == "error"
    assert cases["oku.thresholds rate > 1/s over 1m"] == "skipped"
    assert cases["oku.thresholds p99 < 1s"] == "failure"


def test_strict_readers_take_the_file() -> None:
    """Schemas such as that of the xUnit plugin of Jenkins have these attributes, and no others."""
    root = ET.fromstring(build_junit(build_threshold_run()))  # our own file
    assert set(root.attrib) == {"name", "time", "tests", "failures", "errors"}
    assert set(root[0].attrib) == {*root.attrib, "skipped", "timestamp"}
    assert root[0].get("timestamp") == "2026-02-01T17:05:12"
    # Names of others cannot break the file. XML has no control characters, not even escaped ones.
    summary = msgspec.structs.replace(build_threshold_run(), name='<a "\x1b\x00&>')
    suite = ET.fromstring(build_junit(summary))[0]  # our own file
    assert suite.get("name") == '<a "  &>'
