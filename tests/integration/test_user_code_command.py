"""User code as a user runs it: `oku run scenario.py` on a real stack, then what can be done with the run."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.kit.runs.local_run import run_oku, starting_runs

from oku_core.accounting.outcome import Outcome

ITERATIONS = 20_000
SCENARIO = """\
import asyncio

from helpers.waiting import wait


async def scenario(index):
    await wait()
    assert index != 4711, "it is the one that fails"
    if index % 1000 == 8:
        raise LookupError("one in a thousand")
"""
HELPERS = {
    "__init__.py": "",
    "waiting.py": "import asyncio\nfrom .pauses import S\nasync def wait():\n    await asyncio.sleep(S)\n",
    "pauses.py": "import json\nS = json.load(open('settings/pauses.json'))['s']\n",
}
ONE = "only one file of user code is run"
NOT_OK = {4711, *range(8, ITERATIONS, 1000)}

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a scenario is, with a package that it imports and a file that this reads."""
    (tmp_path / "scenario.py").write_text(SCENARIO)
    (tmp_path / "helpers").mkdir()
    for name, text in HELPERS.items():
        (tmp_path / "helpers" / name).write_text(text)
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "pauses.json").write_text('{"s": 0.001}')
    return tmp_path


def list_failed(folder: Path) -> dict[int, str]:
    """The outcome of each index of the newest run that is not ok."""
    listed = run_oku("failures", "latest", "--json", cwd=folder)
    assert listed.returncode == 0, listed.stderr
    return {
        index: failed["outcome"]
        for failed in json.loads(listed.stdout)["failures"]
        for index in range(failed["start"], failed["stop"])
    }


def read_json(folder: Path, *arguments: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    document: dict[str, Any] = json.loads(run_oku(*arguments, "--json", cwd=folder).stdout)
    return document


def test_a_scenario_is_run_an_exact_number_of_times(folder: Path) -> None:
    """Each index once; one in a thousand raises, one fails by an assertion; both have their tracebacks."""
    ended = run_oku(
        "run", "scenario.py", "--include", "settings", "-n", "20k", "--users", "50", "--workers", "2",
        "--json", "--summary-markdown", "summary.md", cwd=folder,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)
    assert (summary["unit"], summary["accounted"], summary["engine"]) == ("iteration", ITERATIONS, "python")
    assert summary["load"] == "50 users, 20,000 iterations"
    assert summary["outcomes"]["ok"] == ITERATIONS - len(NOT_OK)
    assert sum(summary["outcomes"].values()) == ITERATIONS
    assert summary["resent_at_most"] == 0
    assert summary["latency_ms"]["max"] >= 1.0
    by_reason = {failure["reason"]: failure for failure in summary["failures"]}
    raised = by_reason["LookupError: one in a thousand (scenario.py:10 in scenario)"]
    assert (raised["outcome"], raised["requests"], raised["first_index"]) == (Outcome.EXCEPTION, 20, 8)
    assert raised["traceback"].splitlines()[-1] == "LookupError: one in a thousand"
    [failed] = [each for reason, each in by_reason.items() if "it is the one that fails" in reason]
    assert (failed["requests"], failed["first_index"]) == (1, 4711)
    assert set(list_failed(folder)) == NOT_OK
    assert "| accounted | 20,000 of 20,000 iterations |" in (folder / "summary.md").read_text()
    [report] = (folder / ".oku" / "reports").glob("*.html")
    assert "iterations per second" in report.read_text()

    again = read_json(folder, "retry", "latest")
    assert (again["accounted"], again["outcomes"]["ok"]) == (len(NOT_OK), 0)
    shown = run_oku("replay", summary["run"], "4711", cwd=folder)
    assert shown.returncode == 1
    assert "it is the one that fails (scenario.py:8 in scenario)" in shown.stdout
    assert (
        run_oku("replay", summary["run"], "4712", cwd=folder).stdout.splitlines()[-1].startswith("ok, after")
    )


def test_a_spec_file_names_user_code_beside_it_and_its_rows(folder: Path) -> None:
    """Each iteration has the row of its index; every file of the code is where the code expects it."""
    (folder / "code").mkdir()
    (folder / "code" / "scenario.py").write_text("async def scenario(index):\n    assert index < 30\n")
    (folder / "ids.csv").write_text("id\n" + "".join(f"{row}\n" for row in range(40)))
    spec = {"scenario": "code/scenario.py", "data": "ids.csv", "users": 5, "base-url": "http://127.0.0.1:1"}
    (folder / "spec.json").write_text(json.dumps(spec))
    ended = run_oku("run", "spec.json", "--json", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["outcomes"]["ok"] == 30
    assert set(list_failed(folder)) == set(range(30, 40))
    listed = run_oku("failures", "latest", "--csv", cwd=folder).stdout.splitlines()
    assert listed[0] == "index,outcome,status,reason,target,method,url,id"
    assert listed[1].startswith(f"30,{list_failed(folder)[30]},,")
    assert listed[1].endswith(",,,,30")
    assert run_oku("failures", "latest", cwd=folder).stdout.split()[0] == "30-39"
    assert read_json(folder, "show", "latest", "--index", "31")["row"] == {"id": "31"}
    assert read_json(folder, "replay", "latest", "29")["outcome"] == Outcome.OK


def test_a_run_of_user_code_is_paused_and_resumed(folder: Path) -> None:
    """Its code is with the coordinator: what is beside it may change meanwhile."""
    (folder / "scenario.py").write_text(
        SCENARIO.replace("await wait()", "await wait(); await asyncio.sleep(0.1)")
    )
    with starting_runs(folder) as start:
        run = start(
            "run", str(folder / "scenario.py"), "--include", str(folder / "settings"),
            "-n", "3k", "--users", "60", "--workers", "1",
        )  # fmt: skip
        run.wait_for_accounted(500)
        run.process.send_signal(signal.SIGINT)
        paused = run.finish()
        assert paused["state"] == "paused"
        assert 500 <= paused["accounted"] < 3000
        (folder / "scenario.py").write_text("raise SystemExit\n")
        resumed = start("resume", paused["run"]).finish()
    assert (resumed["state"], resumed["accounted"]) == ("completed", 3000)
    assert resumed["outcomes"]["ok"] == 3000 - 3
    assert resumed["resent_at_most"] == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("none.py",), "oku: none.py: No such file or directory"),
        (("empty.py",), "oku: empty.py: has neither an async def scenario nor users of Locust"),
        (("broken.py",), "oku: broken.py:2: is not Python: '(' was never closed"),
        (("scenario.py", "empty.py"), f"oku: empty.py: {ONE}, scenario.py was given already"),
        (("empty.py", "--scenario", "a.py"), f"oku: empty.py: {ONE}, a.py was given already"),
        (("scenario.py", "--include", ".."), "oku: --include: ..: "),
        (("scenario.py", "--users", "0"), "oku: --users: 0 is not at least 1"),
        (("--users", "5"), "oku: --users: applies only to user code: a scenario or a locustfile"),
    ],
)  # fmt: skip
def test_what_is_wrong_ends_the_command_with_a_line(
    folder: Path, arguments: tuple[str, ...], line: str
) -> None:
    """Nothing is started."""
    (folder / "empty.py").write_text("")
    (folder / "broken.py").write_text("x = 1\ny = (\n")
    ended = run_oku("run", *arguments, cwd=folder)
    assert (ended.returncode, ended.stdout) == (2, "")
    [told] = ended.stderr.splitlines()
    assert told.startswith(line)
    assert not (folder / ".oku").exists()


def test_the_clock_of_a_rate_begins_once_the_user_code_is_loaded(tmp_path: Path) -> None:
    """However long that takes, nothing of the plan is late for it, also after a setup."""
    (tmp_path / "scenario.py").write_text(
        "import time\n\ntime.sleep(2.5)\n\n\ndef setup():\n    return 7\n\n\n"
        "async def scenario(setup_data):\n    assert setup_data == 7\n"
    )
    ran = run_oku(
        "run", "scenario.py", "--rate", "50/s", "--duration", "3s", "--users", "20", "--json", cwd=tmp_path
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["outcomes"]["ok"] == 150
