"""SIGTERM to a real `oku run` whose local run is to be cancelled, and `oku wait` beside one."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.runs.local_run import OKU, LocalRun, starting_runs, wait_until

from oku_cli.exit_code import ExitCode


@contextmanager
def waiting_for(run: LocalRun) -> Iterator["subprocess.Popen[str]"]:
    """An `oku wait` that follows a local run."""
    command = [*OKU, "wait", "latest", "--data-dir", str(run.data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        try:
            assert waiting.stdout is not None
            assert any("running" in line for line in waiting.stdout)
            yield waiting
        finally:
            waiting.kill()


def test_a_local_run_is_cancelled_and_a_command_that_waits_for_it_is_told(tmp_path: Path) -> None:
    """Its stack ends with it, and both commands end with the same code."""
    with starting_runs(tmp_path) as start:
        run = start("run", "-n", "1M", "-w", "1", "--delay", "20ms", "--on-sigterm", "cancel")
        run.wait_for_accounted(100)
        with waiting_for(run) as waiting:
            run.process.send_signal(signal.SIGTERM)
            assert run.process.wait(60) == ExitCode.CUT_SHORT
            output, _ = waiting.communicate(timeout=60)
        assert waiting.returncode == ExitCode.CUT_SHORT
        assert "cancelled" in output
        assert "cancelled" in run.output
        assert "oku resume" not in run.output


def test_a_command_that_waits_for_a_local_run_outlives_its_stack(tmp_path: Path) -> None:
    """The stack was killed: the ledger says what has become of the run, and how to go on."""
    with starting_runs(tmp_path) as start:
        run = start("run", "-n", "1M", "-w", "1", "--delay", "20ms")
        run.wait_for_accounted(100)
        with waiting_for(run) as waiting:
            run.process.kill()
            output, _ = waiting.communicate(timeout=60)
        assert waiting.returncode == ExitCode.CUT_SHORT
        assert f"oku resume {run.run_id()} --data-dir" in " ".join(output.split())


def test_a_second_sigterm_cancels_a_local_run_without_waiting(tmp_path: Path) -> None:
    """Its requests would take a minute; the ledger says that it is cancelled all the same."""
    with starting_runs(tmp_path) as start:
        run = start("run", "-n", "1000", "-w", "1", "--delay", "60s", "-t", "2m", "--on-sigterm", "cancel")
        run.wait_for_leases()
        run.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "cancelling: what is in flight may finish" in run.output, 20, "the first is taken")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(60) == ExitCode.CUT_SHORT
        assert "oku: stopped at once\n" in run.output
        assert run.output.splitlines()[-1].endswith(" is cancelled")
