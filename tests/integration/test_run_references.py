"""Commands that name a run by `latest`, a name, or a part of its id, wherever the runs are."""

from pathlib import Path

from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.runs.local_run import Start, run_oku


def test_runs_of_a_stack_are_named_while_it_runs_and_after_it(start: Start, tmp_path: Path) -> None:
    """What changes a run says which one it was."""
    run = start("run", "--requests", "1M", "--concurrency", "20", "--delay", "1ms", "--name", "my soak")
    where = ("--data-dir", str(run.data_dir))
    run.wait_for_accounted(1)
    run_id = run.run_id()
    paused = run_oku("pause", "latest", *where, cwd=tmp_path)
    assert (paused.returncode, paused.stderr) == (0, "")
    assert paused.stdout.startswith(f"run {run_id} is paus")
    accounted = run.finish()["accounted"]

    resumed = start("resume", "my soak")
    resumed.wait_for_accounted(accounted + 1)
    cancelled = run_oku("cancel", run_id[-4:], *where, cwd=tmp_path)
    assert cancelled.stdout.startswith(f"run {run_id} is cancel")
    assert resumed.finish()["run"] == run_id
    refused = run_oku("resume", "latest", *where, cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"oku: run {run_id} is cancelled, it cannot be resumed\n",
    )
    deleted = run_oku("rm", "my soak", "latest", *where, cwd=tmp_path)
    assert (deleted.returncode, deleted.stdout) == (0, f"run {run_id} is deleted\n")
    gone = run_oku("show", "latest", *where, cwd=tmp_path)
    assert (gone.returncode, gone.stderr.count("\n")) == (2, 1)
    assert "there are no runs yet, start one with: oku run --data-dir" in gone.stderr


def test_runs_of_a_remote_coordinator_are_named(tmp_path: Path) -> None:
    """What looks takes the newest run of a name; what changes asks which one."""
    with run_broker(tmp_path) as broker_url, run_coordinator(broker_url, tmp_path / "data") as api:
        first, second = (api.submit(requests=10, name="nightly *") for _ in range(2))
        third = api.submit(requests=10)
        where = ("--coordinator", api.url, "--token", TOKEN)
        shown = run_oku("show", "nightly *", *where, cwd=tmp_path)
        assert second in shown.stdout
        made = run_oku("report", "latest", *where, cwd=tmp_path)
        assert made.stderr.startswith(f"wrote oku-report-{third}.html")
        for command in ("pause", "resume", "cancel", "rm"):
            asked = run_oku(command, "nightly *", *where, cwd=tmp_path)
            several = f"{second} (pending) or {first} (pending); give the id of one"
            assert asked.returncode == 2
            assert asked.stderr == f"oku: {api.url}: nightly * may be {several}\n"
        assert [run["state"] for run in api.list_runs()] == ["pending"] * 3
        cancelled = run_oku("cancel", "latest", *where, cwd=tmp_path)
        assert cancelled.stdout == f"run {third} is cancelled\n"
        deleted = run_oku("rm", "latest", third[-4:], first, *where, cwd=tmp_path)
        assert deleted.returncode == 2
        assert deleted.stdout == f"run {third} is deleted\n"
        assert deleted.stderr.startswith(f"oku: run {first} is pending; it cannot be deleted")
        empty = run_oku("show", "", *where, cwd=tmp_path)
        assert empty.stderr == "oku: RUN: is empty; give latest, an id, a name, or a part of an id\n"
