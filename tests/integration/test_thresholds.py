"""What a pipeline sees of thresholds: exit codes, JSON, JUnit XML and Markdown of real runs."""

import json
import signal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.kit.runs.local_run import run_oku, starting_runs

from oku_cli.exit_code import ExitCode

SLOW = """
import asyncio
import time

begun = []

async def setup():
    await asyncio.sleep(3.5)

async def scenario():
    begun.append(time.monotonic())
    await asyncio.sleep(0.1 if begun[-1] - begun[0] < 4.2 else 3.5)
"""
"""Answers take long from shortly before the end of a run of 5 s."""


def _run(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the summary of a run against delay servers, with one worker."""
    done = run_oku("run", "--data-dir", "data", "-w", "1", "--quiet", "--json", *arguments, cwd=folder)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def _list_verdicts(summary: dict[str, Any]) -> list[str]:
    return [threshold["verdict"] for threshold in summary["thresholds"]]


def test_a_run_that_keeps_to_its_thresholds_passes(tmp_path: Path) -> None:
    """Figures of the summary are those that were judged."""
    code, summary = _run(
        tmp_path, "-n", "2000", "--delay", "1ms..5ms",
        "--threshold", "ok >= 100%", "--threshold", "max < 10s", "--threshold", "mean < 5s",
    )  # fmt: skip

    assert (code, summary["verdict"]) == (ExitCode.COMPLETED, "passed")
    assert _list_verdicts(summary) == ["passed"] * 3
    assert summary["thresholds"][0]["value"] == 1.0
    assert summary["thresholds"][2]["value"] == pytest.approx(summary["latency_ms"]["mean"], abs=1e-5)


def test_a_run_that_does_not_keep_to_them_fails_and_says_so_in_every_form(tmp_path: Path) -> None:
    """The run itself is completed: nothing of it is missing."""
    code, summary = _run(
        tmp_path, "-n", "1000", "--delay", "20ms", "--threshold", "p50 < 10ms", "--threshold", "ok >= 99%",
        "--junit", "tests.xml", "--summary-markdown", "summary.md",
    )  # fmt: skip

    assert (code, summary["verdict"], summary["state"]) == (ExitCode.NOT_PASSED, "failed", "completed")
    assert _list_verdicts(summary) == ["failed", "passed"]
    assert (summary["thresholds"][0]["against"], summary["thresholds"][0]["allowed"]) == (1000, 500)
    suite = ET.fromstring((tmp_path / "tests.xml").read_bytes())[0]  # our own file
    failures = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failures == ["p50 < 10ms"]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    assert "| p50 \\< 10ms | failed |" in (tmp_path / "summary.md").read_text()


def test_a_run_ends_as_soon_as_a_threshold_that_aborts_is_lost(tmp_path: Path) -> None:
    """It is cancelled with the threshold as its reason; what the rest could turn stays undecided."""
    code, summary = _run(
        tmp_path, "--rate", "400/s", "--duration", "1m", "--delay", "30ms",
        "--threshold", "p99 < 10ms: abort", "--threshold", "ok >= 99%",
    )  # fmt: skip

    assert (code, summary["state"], summary["verdict"]) == (ExitCode.NOT_PASSED, "cancelled", "failed")
    assert summary["reason"] == "threshold lost: p99 < 10ms: abort"
    assert _list_verdicts(summary) == ["failed", "undecided"]
    assert summary["active_s"] < 30
    shown = run_oku("show", "latest", "--json", "--data-dir", "data", cwd=tmp_path)
    assert json.loads(shown.stdout)["thresholds"] == summary["thresholds"]
    resumed = run_oku("resume", "latest", "--data-dir", "data", cwd=tmp_path)
    assert resumed.returncode == ExitCode.WRONG_INPUT


def test_some_seconds_in_a_row_end_a_run_too(tmp_path: Path) -> None:
    """One connection cannot keep to a rate that needs several."""
    code, summary = _run(
        tmp_path, "--rate", "100/s", "--duration", "1m", "--delay", "100ms", "-c", "2",
        "--threshold", "rate >= 0.9 of plan over 2s: abort",
    )  # fmt: skip

    assert (code, summary["state"]) == (ExitCode.NOT_PASSED, "cancelled")
    threshold = summary["thresholds"][0]
    assert threshold["verdict"] == "failed"
    assert threshold["value"] < 0.5
    assert (threshold["lost_s"], threshold["lost_phase"]) == (2.0, "")
    assert threshold["lost_value"] < 0.5
    assert summary["active_s"] < 30


def test_a_run_loses_nothing_before_it_begins_and_while_it_ends(tmp_path: Path) -> None:
    """Its setup takes longer than the seconds that are looked at, as its last answers do."""
    (tmp_path / "slow.py").write_text(SLOW)
    code, summary = _run(
        tmp_path, "slow.py", "--duration", "5s", "-c", "4", "--threshold", "rate >= 1/s over 2s: abort",
        "--threshold", "ok >= 1 over 2s: abort",
    )  # fmt: skip

    assert (code, summary["state"], summary["verdict"]) == (ExitCode.COMPLETED, "completed", "passed")
    assert summary["hooks"][0]["took_s"] > 3
    assert summary["latency_ms"]["max"] > 3000


def test_a_run_that_is_interrupted_has_no_verdict_yet(tmp_path: Path) -> None:
    """Its exit code is that of a run that was cut short; it has one once it was resumed."""
    with starting_runs(tmp_path) as start:
        flags = ("--threshold", "ok >= 99%", "--threshold", "rate >= 1/s over 2s")
        junit = ("--junit", str(tmp_path / "tests.xml"))
        run = start("run", "--rate", "50/s", "--duration", "8s", "--delay", "5ms", "-w", "1", *flags, *junit)
        run.wait_for_accounted(50)
        run.process.send_signal(signal.SIGINT)
        paused = run.finish()
        assert run.process.returncode == ExitCode.CUT_SHORT
        assert (paused["state"], paused["verdict"]) == ("paused", None)
        assert _list_verdicts(paused) == ["undecided", "undecided"]
        suite = ET.fromstring((tmp_path / "tests.xml").read_bytes())[0]  # our own file
        assert (suite.get("failures"), suite.get("errors")) == ("0", "1")

        resumed = start("resume", paused["run"])
        assert resumed.finish()["verdict"] == "passed"
        assert resumed.process.returncode == ExitCode.COMPLETED


@pytest.mark.parametrize(
    ("flags", "code"), [([], ExitCode.NOT_PASSED), (["--allow-undecided"], ExitCode.COMPLETED)]
)
def test_an_undecided_threshold_does_not_pass_unless_that_is_allowed(
    tmp_path: Path, flags: list[str], code: ExitCode
) -> None:
    """A run of two seconds has no minute to look at."""
    ended, summary = _run(
        tmp_path, "--rate", "50/s", "--duration", "2s", "--threshold", "rate >= 1/s over 1m", *flags
    )

    assert (ended, summary["verdict"]) == (code, "undecided")
    assert (
        summary["thresholds"][0]["detail"] == "the run had no 60 s in a row that could be judged: 2 s at most"
    )


def test_a_run_in_which_nothing_was_ok_has_not_passed(tmp_path: Path) -> None:
    """It needs no threshold for that."""
    code, summary = _run(tmp_path, "http://127.0.0.1:9/", "-n", "50")

    assert (code, summary["verdict"], summary["state"]) == (ExitCode.NOT_PASSED, "failed", "completed")


@pytest.mark.parametrize(
    ("threshold", "line"),
    [
        ("p99 < 300", "--threshold: p99 < 300: character 7: 300 is not a duration with its unit"),
        ("p99 of buy < 1s", "--threshold: p99 of buy < 1s: the run has no target buy"),
        ("p99 < 1s during soak", "--threshold: p99 < 1s during soak: the run has no phase soak"),
    ],
)
def test_a_wrong_threshold_is_answered_in_one_line_and_nothing_is_started(
    tmp_path: Path, threshold: str, line: str
) -> None:
    """The line names the place."""
    done = run_oku("run", "--data-dir", "data", "--threshold", threshold, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (ExitCode.WRONG_INPUT, "")
    assert done.stderr.startswith(f"oku: {line}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()
