"""Every long-lived task of a coordinator and of a worker fails once in the middle of a run."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import run_coordinator
from tests.kit.coordinators.coordinator_in_process import running_coordinator
from tests.kit.faults.failing_tasks import FailingSupervisor
from tests.kit.loki.fake_loki import run_loki
from tests.kit.runs.account import assert_completed
from tests.kit.servers.delay_server import Start
from tests.kit.workers.engine_worker import EngineWorker, count
from tests.kit.workers.worker_process import run_worker

from oku_coordinator.loki.endpoint import LokiTarget
from oku_core.spec.spec import HTTP1_ENGINES, Engine, Spec
from oku_core.spec.values.url import Url

_WITHIN_S = 40


async def test_a_run_completes_although_every_task_of_the_coordinator_fails_once(tmp_path: Path) -> None:
    """Each goes on after a pause and is a notice until then; the account balances, Loki has its lines."""
    supervisors: list[FailingSupervisor] = []

    def build(*settings: object) -> FailingSupervisor:
        supervisors.append(FailingSupervisor(*settings))
        return supervisors[0]

    notices: set[str] = set()
    start_server = Start(tmp_path)
    server = start_server("--delay", "0s")
    try:
        with run_broker(tmp_path) as broker_url, run_worker(broker_url, name="w1"):
            async with (
                run_loki() as (loki, loki_url),
                running_coordinator(
                    broker_url, tmp_path / "data", build, server_urls=(server.url,),
                    loki=LokiTarget(url=loki_url),
                ) as (_, api),
            ):  # fmt: skip
                run = await asyncio.to_thread(
                    api.submit, requests=600, **{"delay": "50ms", "concurrency": 10, "range-size": "100"}
                )
                async with asyncio.timeout(_WITHIN_S):
                    while True:
                        summary = await asyncio.to_thread(api.summary, run)
                        notices |= set(supervisors[0].troubles)
                        is_over = summary["state"] not in ("pending", "running")
                        if is_over and all(supervisors[0].recovered.values()) and not supervisors[0].troubles:
                            break
                        await asyncio.sleep(0.05)
                summary = await asyncio.to_thread(api.summary, run)
                await asyncio.sleep(1.0)
    finally:
        start_server.end()
    assert_completed(summary)
    recovered = supervisors[0].recovered
    assert {
        "dispatcher",
        "ticks",
        "publisher",
        "delay servers",
        "checkpoints",
        "progress",
    } <= recovered.keys()
    assert all(recovered.values())
    assert notices == {f"{name}: InjectedError: a fault of {name}" for name in recovered}
    assert any(labels["kind"] == "summary" for labels, _, _ in loki.lines)


@pytest.mark.parametrize("engine", HTTP1_ENGINES, ids=str)
async def test_requests_end_although_every_task_of_their_engine_fails_once(
    tmp_path: Path, engine: Engine
) -> None:
    """The task that ends overdue requests is one of them; without it a lease would hang for ever."""
    supervisor = FailingSupervisor(fails_at=1)
    start_server = Start(tmp_path)
    worker = EngineWorker(supervisor=supervisor)
    worker.overlook("InjectedError")
    try:
        url = f"{start_server('--delay', '30s').url}/{{i}}"
        spec = Spec(urls=(Url(url),), concurrency=5, timeout_s=0.3, engine=engine)
        # The first lease does not want all slots: there is something left to do for what failed at it.
        accounts = [await worker.run(spec, 3), await worker.run(spec, 10, start=3)]
    finally:
        worker.close()
        start_server.end()
    assert [count(account) for account in accounts] == [{"timeout": 3}, {"timeout": 10}]
    assert "timeouts" in supervisor.recovered
    assert all(supervisor.recovered.values())
    assert supervisor.troubles == []


def test_a_run_completes_although_every_task_of_its_worker_fails_once(tmp_path: Path) -> None:
    """The heartbeat is among them; without it the worker counts as dead."""
    log = tmp_path / "worker.log"
    start_server = Start(tmp_path)
    try:
        with (
            run_broker(tmp_path) as broker_url,
            log.open("w") as output,
            subprocess.Popen(
                [sys.executable, "-m", "tests.kit.workers.failing_worker", broker_url], stderr=output
            ) as worker,
        ):
            url = f"{start_server('--delay', '50ms').url}/{{i}}"
            with run_coordinator(broker_url, tmp_path / "data") as api:
                run = api.submit(requests=600, url=url, concurrency=10, **{"range-size": "100"})
                summary = api.wait_for_state(run, "completed", _WITHIN_S)
            worker.terminate()
    finally:
        start_server.end()
    assert_completed(summary)
    for task in ("heartbeat", "loop watchdog", "timeouts", "checkpoints"):
        assert f"{task}: InjectedError: a fault of {task}" in log.read_text()
