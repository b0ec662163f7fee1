"""Freezes a process of this machine, as a machine that hangs would."""

import os
import signal
from pathlib import Path

from tests.kit.runs.local_run import wait_until


def freeze(pid: int) -> None:
    """Stop a process, and wait until none of its threads runs: where much runs, one may go on for a while."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    wait_until(lambda: all(_is_stopped(each) for each in threads.iterdir()), 10, f"process {pid} is stopped")


def _is_stopped(thread: Path) -> bool:
    return (thread / "stat").read_text().rpartition(") ")[2].startswith("T")
