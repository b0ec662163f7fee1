"""A real disk that fills under the ledger, and has space again."""

import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.kit.coordinators.coordinator import CoordinatorApi
from tests.kit.coordinators.run_series import list_run_series
from tests.kit.faults.abuse import run_site
from tests.kit.faults.small_disk import mount_small_disk
from tests.kit.runs.local_run import Start, run_oku, wait_until

from oku_cli.exit_code import ExitCode
from oku_coordinator.ledger.storage.storage_health import LEAST_FREE_BYTES

_REQUESTS = 1200
_FULL = "the ledger cannot be used: its disk is full"
_ENDS_WITHIN_S = 15.0


def ask(api: CoordinatorApi, path: str) -> tuple[int, str]:
    """Status and text of what needs no token."""
    try:
        with urllib.request.urlopen(f"{api.url}{path}", timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_disk_that_fills_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    """The coordinator is not ready, blames nobody else, and goes on by itself when there is space again."""
    with mount_small_disk(tmp_path / "coordinator") as disk, run_site(tmp_path) as site:
        api = site.api
        run = api.submit(requests=_REQUESTS, concurrency=5, delay="20ms", timeout="5s")
        wait_until(lambda: api.summary(run)["accounted"] > 0, 20, "the run has begun")
        disk.fill()
        wait_until(lambda: ask(api, "/readyz")[0] == 503, 20, "it is not ready")
        assert ask(api, "/readyz")[1].startswith(_FULL)
        assert ask(api, "/healthz") == (200, "ok\n")
        time.sleep(3)  # it stays so, whatever small change succeeds
        assert ask(api, "/readyz")[1].startswith(_FULL)
        notices = api.summary(run)["notices"]
        assert notices[0].startswith(_FULL)
        assert not any("broker" in notice or "StorageError" in notice for notice in notices)
        assert api.call("POST", f"/api/runs/{run}/pause")[0] == 503
        assert api.read_metric("oku_ledger_usable") == 0
        assert api.read_metric('oku_ledger_faults_total{reason="disk_full"}') > 0
        assert api.read_metric("oku_data_available_bytes") < LEAST_FREE_BYTES
        assert api.read_metric('oku_runs{state="running"}') == 1
        disk.free()
        summary = api.wait_for_state(run, "completed", 60)
        assert ask(api, "/readyz") == (200, "ok\n")
        assert api.read_metric("oku_ledger_usable") == 1
        assert api.read_metric("oku_data_available_bytes") > LEAST_FREE_BYTES
        expected = {**list_run_series(summary), 'oku_runs{state="running"}': 0}
        assert {name: api.read_metric(name) for name in expected} == expected
    assert (summary["accounted"], summary["outcomes"]["ok"]) == (_REQUESTS, _REQUESTS)
    assert (summary["resent_at_most"], summary["servers"]) == (0, {"served": _REQUESTS})


def test_a_command_on_a_full_disk_ends_with_one_line(tmp_path: Path) -> None:
    """A new folder has no room for its first file, and the ledger of an old one cannot be opened."""
    with mount_small_disk(tmp_path / "disk", "30m") as disk:
        command = ("run", "--requests", "10", "--delay", "1ms", "--quiet", "--data-dir")
        assert run_oku(*command, "old", cwd=disk.path).returncode == ExitCode.COMPLETED
        disk.fill()
        for folder, line in (
            ("new", f"oku: {disk.path}/new/.gitignore: No space left on device"),
            ("old", f"oku: {disk.path}/old/ledger.sqlite3: {_FULL}"),
        ):
            ended = run_oku(*command, folder, cwd=disk.path)
            assert ended.returncode == ExitCode.WRONG_INPUT
            assert ended.stderr.startswith(line)
            assert len(ended.stderr.splitlines()) == 1


def test_a_local_run_ends_on_sigterm_although_its_disk_is_full(tmp_path: Path, start: Start) -> None:
    """It says why it does not wait; when there is space again the run goes on."""
    with mount_small_disk(tmp_path / "disk", "30m") as disk:
        started = start(
            "run", "--requests", str(_REQUESTS), "--delay", "20ms", "-c", "5", data_dir="disk/data"
        )
        started.wait_for_accounted(1)
        disk.fill()
        wait_until(lambda: _FULL in started.output, 20, "it is said")
        started.process.send_signal(signal.SIGTERM)
        assert started.process.wait(_ENDS_WITHIN_S) == ExitCode.CUT_SHORT
        assert f"oku: stopped at once ({_FULL}" in started.output
        run = started.run_id()
        disk.free()
        summary = start("resume", run, data_dir="disk/data").finish()
    assert (summary["state"], summary["accounted"]) == ("completed", _REQUESTS)
    assert _REQUESTS <= summary["servers"]["served"] <= _REQUESTS + summary["resent_at_most"]
