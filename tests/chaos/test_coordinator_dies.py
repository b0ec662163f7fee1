"""The coordinator is killed at random moments; the workers never notice."""

import random
import time

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.both_transports import on_both_transports
from tests.kit.runs.local_run import Start

from oku_core.spec.spec import Engine


@on_both_transports
@pytest.mark.parametrize("engine", [Engine.HTTPTOOLS])
def test_the_coordinator_is_killed_ten_times(start_load: Start) -> None:
    """The run goes on over ten deaths of the coordinator, and no worker is started again. Its thresholds
    are judged by the whole account.
    """
    run = start_load(27_500, "--threshold", "ok >= 50%", "--threshold", "p99 < 30s")
    run.wait_for_leases()
    workers = {name: run.pid(name) for name in ("worker-1", "worker-2")}
    samples = random.Random(1)
    for _ in range(10):
        time.sleep(samples.uniform(0.2, 2.0))
        old_pid = run.kill("coordinator")
        run.wait_for_restart("coordinator", old_pid)
    assert {name: run.pid(name) for name in workers} == workers

    summary = run.finish()

    assert_completed(summary)
    assert summary["resent_at_most"] == 0
    assert not any(worker["lost"] for worker in summary["workers"])
    assert "coordinator died (signal 9), started again" in run.output
    assert [each["verdict"] for each in summary["thresholds"]] == ["passed", "passed"]
    share, p99 = (each["value"] for each in summary["thresholds"])
    assert (share, p99) == (1, summary["latency_ms"]["p99"])
