"""What user code prints reaches the screen of the command that follows its run, and a file."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from tests.integration.test_data import Recorder
from tests.kit.runs.local_run import run_oku

SCENARIO = """
import logging, sys

def setup():
    print("in setup")

async def scenario(index, http):
    print("iteration", index)
    if index == 0:
        print("an error", file=sys.stderr)
        logging.getLogger("shop").warning("a warning")
    await http.post("/", data="x")
"""
LOCUSTFILE = """
from locust import HttpUser, task

class Shopper(HttpUser):
    @task
    def buy(self):
        print("buys", self.oku.index)
        self.client.post("/", data="x")
"""


@pytest.fixture
def target() -> Iterator[Recorder]:
    """A target for one test."""
    with Recorder() as recorder:
        Thread(target=recorder.serve_forever, daemon=True).start()
        yield recorder
        recorder.shutdown()


@pytest.mark.parametrize("code", [SCENARIO, LOCUSTFILE])
def test_the_first_lines_are_shown_and_the_rest_is_in_files(
    target: Recorder, tmp_path: Path, code: str
) -> None:
    """From each worker; standard error and logging are printing as well. Standard output stays JSON."""
    (tmp_path / "shop.py").write_text(code)
    command = ("run", "shop.py", "--host", target.url, "-w", "2", "--iterations", "100", "--users", "4")
    ended = run_oku(*command, "--json", "--quiet", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    printed = json.loads(ended.stdout)["printed"]
    assert len(printed["lines"]) == 20
    shown = [f"{line['worker']}: {line['text']}" for line in printed["lines"]]
    assert [line for line in ended.stderr.splitlines() if line in shown] == shown
    written = []
    for worker, path in printed["files"].items():
        assert Path(path).is_relative_to(tmp_path / ".oku")
        assert f"{path} ({worker})" in ended.stderr
        written += Path(path).read_text().splitlines()[1:]
    assert len(written) == printed["count"]
    assert {line["text"] for line in printed["lines"]} <= set(written)
    assert f"user code printed {printed['count'] - 20} more lines: " in ended.stderr
    if code is LOCUSTFILE:
        assert {f"buys {index}" for index in range(100)} <= set(written)
        return
    others = {"in setup", "an error", "a warning"}
    assert sorted(written) == sorted({f"iteration {index}" for index in range(100)} | others)


def test_lines_are_shown_before_the_first_iteration_ends(target: Recorder, tmp_path: Path) -> None:
    """A run with long iterations is watched by what it prints."""
    (tmp_path / "slow.py").write_text(
        "import asyncio\n\nasync def scenario(index, http):\n"
        "    print('begins')\n    await http.post('/', data='x')\n    await asyncio.sleep(6)\n"
    )
    ended = run_oku("run", "slow.py", "--host", target.url, "--iterations", "1", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    begins = next(place for place, line in enumerate(lines) if "worker-1: begins" in line)
    assert any(" running 0/1 " in line for line in lines[begins:])
