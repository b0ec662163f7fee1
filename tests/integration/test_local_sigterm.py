"""SIGTERM to a real `oku run` with a local stack that is to be cancelled, and `oku wait` beside it."""

import signal
import subprocess
from pathlib import Path

from tests.kit.runs.local_run import OKU, starting_runs, wait_until

from oku_cli.exit_code import ExitCode


def test_a_local_run_is_cancelled_and_who_waits_for_it_is_told(tmp_path: Path) -> None:
    """Its stack ends with it; the command that waits then reads the ledger, and ends with the same code."""
    with starting_runs(tmp_path) as start:
        run = start("run", "-n", "1M", "-w", "1", "--delay", "20ms", "--on-sigterm", "cancel")
        run.wait_for_accounted(100)
        command = [*OKU, "wait", "latest", "--data-dir", str(run.data_dir)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
            assert waiting.stdout is not None
            assert any("running" in line for line in waiting.stdout)
            run.process.send_signal(signal.SIGTERM)
            assert run.process.wait(20) == ExitCode.CUT_SHORT
            output, _ = waiting.communicate(timeout=20)
        assert waiting.returncode == ExitCode.CUT_SHORT
        assert "cancelled" in output
        assert "cancelled" in run.output
        assert "oku resume" not in run.output


def test_a_second_sigterm_cancels_a_local_run_without_waiting(tmp_path: Path) -> None:
    """Its requests would take a minute; the ledger says that it is cancelled all the same."""
    with starting_runs(tmp_path) as start:
        run = start("run", "-n", "1000", "-w", "1", "--delay", "60s", "-t", "2m", "--on-sigterm", "cancel")
        run.wait_for_leases()
        run.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "cancelling: what is in flight may finish" in run.output, 20, "the first is taken")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(20) == ExitCode.CUT_SHORT
        assert "oku: stopped at once\n" in run.output
        assert run.output.splitlines()[-1].endswith(" is cancelled")
