"""The `oku` command itself is killed, and the run is resumed."""

import signal

import pytest
from tests.kit.runs.account import assert_account_balances, assert_completed, list_flags
from tests.kit.runs.both_transports import on_both_transports
from tests.kit.runs.local_run import Start, is_alive, wait_until

from oku_core.spec.spec import Engine


@on_both_transports
@pytest.mark.parametrize("engine", [Engine.AIOHTTP])
def test_the_command_is_killed_again_and_again(start: Start, start_load: Start) -> None:
    """No child survives it, and `oku resume` goes on where the ledger stands, any number of times."""
    run = start_load(15_000, "--range-size", "500")
    run.wait_for_leases()
    run_id, accounted = run.run_id(), 0
    for _ in range(3):
        run.wait_for_accounted(accounted + 2_000)
        children = list(run.children().values())
        run.process.kill()
        run.process.wait()
        wait_until(lambda expected=children: not any(map(is_alive, expected)), 15, "no child survives")  # type: ignore[misc]
        assert run.lengths().accounted >= accounted + 2_000
        accounted = run.lengths().accounted
        run = start("resume", run_id, "--workers", "3")

    summary = run.finish()

    assert run.process.returncode == 0
    assert_completed(summary)
    assert summary["run"] == run_id
    assert len(summary["workers"]) == 3
    assert {"interrupted", "resent"} <= list_flags(summary)


@pytest.mark.parametrize("engine", [Engine.HTTPTOOLS])
def test_ctrl_c_pauses_and_nothing_is_sent_twice(start: Start, start_load: Start) -> None:
    """Requests in flight are accounted for, the exit code is 3, and the resumed run sends the rest."""
    run = start_load(12_500)
    run.wait_for_accounted(2_500)
    run.process.send_signal(signal.SIGINT)
    paused = run.finish()

    assert run.process.returncode == 3
    assert paused["state"] == "paused"
    assert paused["resent_at_most"] == 0
    assert paused["servers"]["served"] == paused["accounted"] < 12_500
    assert_account_balances(paused)
    assert f"resume {paused['run']}" in run.output

    summary = start("resume", paused["run"]).finish()

    assert_completed(summary)
    assert summary["resent_at_most"] == 0
    assert summary["servers"]["served"] == summary["requests"]


@pytest.mark.parametrize("engine", [Engine.HTTPTOOLS])
def test_ctrl_c_twice_stops_at_once(start: Start, engine: Engine) -> None:
    """A second Ctrl-C does not wait for requests in flight; the run can be resumed all the same."""
    run = start(
        "run", "--requests", "2000", "--concurrency", "500", "--delay", "0..3s", "--grace", "60s",
        "--engine", engine,
    )  # fmt: skip
    run.wait_for_leases()
    wait_until(lambda: "running" in run.output, 10, "it runs")
    run.process.send_signal(signal.SIGINT)
    wait_until(lambda: "Ctrl-C again" in run.output, 15, "the first Ctrl-C is taken")
    run.process.send_signal(signal.SIGINT)
    run.process.wait(15)
    assert run.process.returncode == 3

    summary = start("resume", run.run_id(), "--workers", "2").finish()

    assert_completed(summary)
    # Whoever waits for them has nothing to send again.
    assert summary["resent_at_most"] > 0
