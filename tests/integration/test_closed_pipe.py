"""A command whose output nobody reads any more does what it is to do, and ends with its own exit code."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest
from tests.kit.coordinators.transactions import read
from tests.kit.runs.local_run import OKU, is_alive, wait_until

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.tables.run_table import fetch_runs

RUN = ["run", "--requests", "2000", "--delay", "0..200ms", "--concurrency", "200", "--workers", "1"]


def read_runs(folder: Path) -> list[tuple[str, int]]:
    """State and accounted requests of each run of a data folder."""
    if not (folder / ".oku" / "ledger.sqlite3").exists():
        return []
    ledger = Ledger(folder / ".oku" / "ledger.sqlite3", read_only=True)
    try:
        snapshots = [read(ledger, fetch_snapshot, record.run) for record in read(ledger, fetch_runs)]
        return [(str(snapshot.record.state), snapshot.lengths.accounted) for snapshot in snapshots]
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def ended_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a run that is over, and its id."""
    folder = tmp_path_factory.mktemp("ended")
    ended = subprocess.run(
        [*OKU, "run", "--requests", "50", "--json"], cwd=folder, capture_output=True, check=True
    )
    return folder, json.loads(ended.stdout)["run"]


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["plain", "json"])
@pytest.mark.parametrize("closed", ["output", "both"])
def test_a_run_goes_on_when_its_pipe_is_closed(tmp_path: Path, flags: list[str], closed: str) -> None:
    """All requests are made and accounted for, the exit code is 0, and nothing is said about the pipe."""
    with subprocess.Popen(
        [*OKU, *RUN, *flags], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        for stream in (process.stdout, process.stderr if closed == "both" else None):
            if stream is not None:
                stream.close()
        error = b"" if closed == "both" else read_all(process.stderr)
        assert process.wait(60) == 0
    assert b"pipe" not in error.lower()
    assert b"Traceback" not in error
    assert read_runs(tmp_path) == [("completed", 2000)]


def read_all(stream: IO[bytes] | None) -> bytes:
    """What comes out of a pipe until its end."""
    assert stream is not None
    return stream.read()


def test_a_pipeline_ends_as_its_run_does(tmp_path: Path) -> None:
    """Under `pipefail`, which reports the failure of any part, it ends with the exit code of the run."""
    script = 'set -o pipefail; "$@" | head -1; echo "${PIPESTATUS[@]}"; "$@" | grep -q .; echo $?'
    ended = subprocess.run(
        ["bash", "-c", script, "bash", *OKU, *RUN],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert ended.stdout.splitlines()[-2:] == ["0 0", "0"]
    assert ended.stderr == ""
    assert read_runs(tmp_path) == [("completed", 2000)] * 2


COMMANDS = {
    "show": ["show", "RUN"],
    "show json": ["show", "RUN", "--json"],
    "runs": ["runs"],
    "report": ["report", "RUN", "--output", "-"],
    "report json": ["report", "RUN", "--json"],
    "help": ["run", "--help"],
}


@pytest.mark.parametrize("redirection", [">&-", "<&- >&- 2>&-", "| true"])
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_only_reads_does_not_mind_a_closed_pipe(
    ended_run: tuple[Path, str], arguments: list[str], redirection: str
) -> None:
    """It makes no difference whether the pipe is closed meanwhile or the stream was closed from the start."""
    folder, run = ended_run
    script = f'set -o pipefail; "$@" {redirection}'
    words = [run if word == "RUN" else word for word in arguments]
    before = (folder / ".oku" / "ledger.sqlite3").read_bytes()

    ended = subprocess.run(
        ["bash", "-c", script, "bash", *OKU, *words],
        cwd=folder, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert (folder / ".oku" / "ledger.sqlite3").read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_reported_and_stops_no_run(tmp_path: Path, ended_run: tuple[Path, str]) -> None:
    """A full disk is not a closed pipe: output that should be there is missing."""
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*OKU, *RUN, "--json"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False
        )
        shown = subprocess.run(
            [*OKU, "show", ended_run[1]], cwd=ended_run[0], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert read_runs(tmp_path) == [("completed", 2000)]
    for each in (ended, shown):
        assert each.returncode == 2
        assert each.stderr.splitlines()[-1] == b"oku: standard output: No space left on device"


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_an_interrupt_at_any_moment_of_the_start_says_what_happened(tmp_path: Path) -> None:
    """Nothing was started, or the run can be resumed; the exit code is 3, and no process is left."""
    delay_s, has_begun = 0.03, False
    while not has_begun:
        folder = tmp_path / f"{delay_s:.2f}"
        folder.mkdir()
        has_begun = interrupt_a_run(folder, delay_s)
        delay_s *= 1.5
        assert delay_s < 30, "no run was ever begun"


def interrupt_a_run(folder: Path, delay_s: float) -> bool:
    """Start a run, interrupt it so long after its command began to import, and see what it says.

    Returns:
        Whether there is a run.
    """
    # Whatever is imported is told: so it is known when the interpreter has begun with what is Oku's.
    environment = os.environ | {"PYTHONPROFILEIMPORTTIME": "1"}
    with (folder / "output").open("w+") as output:
        process = subprocess.Popen(
            [*OKU, "run", "--requests", "1M", "--delay", "10ms", "--workers", "1"],
            cwd=folder, env=environment, stdout=output, stderr=output,
        )  # fmt: skip
        wait_until(
            lambda: "oku_core.process.prctl" in (folder / "output").read_text(), 20, "the command begins"
        )
        time.sleep(delay_s)
        children = list_children(process.pid)
        process.send_signal(signal.SIGINT)
        code = process.wait(30)
    said = (folder / "output").read_text()
    runs = read_runs(folder)
    assert code == 3, (delay_s, said)
    assert "Traceback" not in said
    if runs:
        assert "resume it with: oku resume" in said, (delay_s, said)
        assert runs[0][0] == "paused"
    else:
        assert "oku: interrupted, no" in said, (delay_s, said)
    wait_until(lambda: not any(map(is_alive, children)), 10, "nothing that was started is left")
    return bool(runs)


def list_children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
