"""Workers join, die and leave: the target never has more open requests than the run asks for."""

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.runs.local_run import OKU, wait_until
from tests.kit.servers.open_requests import run_open_requests
from tests.kit.workers.worker_process import Process, run_worker

_MOST = 7
_DELAY_S = 0.06
_SETTLED_S = 60


@pytest.mark.parametrize(
    "load",
    [
        ("--duration", "5m", "--engine", "aiohttp"),
        ("--duration", "5m", "--engine", "httptools"),
        ("--rate", "300/s", "--duration", "5m", "--engine", "httptools"),
    ],
    ids=["closed-aiohttp", "closed-httptools", "open-httptools"],
)
def test_no_more_requests_are_open_than_the_run_asks_for(load: tuple[str, ...], tmp_path: Path) -> None:
    """In closed and open runs; and after each change as many are, once more."""
    with ExitStack() as stack:
        target = stack.enter_context(run_open_requests(_DELAY_S))
        broker_url = stack.enter_context(run_broker(tmp_path))
        api = stack.enter_context(run_coordinator(broker_url, tmp_path / "data"))

        def join(name: str) -> Process:
            log = tmp_path / f"{name}.log"
            return stack.enter_context(run_worker(broker_url, name=name, log=log))

        first, second = join("w1"), join("w2")
        wait_until(lambda: api.read_metric("oku_workers") == 2, 90, "the workers are there")
        where = ("--coordinator", api.url, "--token", TOKEN, "--quiet", "--on-sigterm", "cancel")
        command = [*OKU, "run", f"{target.url}/{{i}}", "-c", str(_MOST), *load, *where]
        run = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        stack.callback(run.kill)

        def check(what: str) -> None:
            """All are open again, and never were more."""
            seen = []

            def are_all_open() -> bool:
                time.sleep(0.5)
                seen.append(target.take_most())
                assert max(seen) <= _MOST, (what, seen)
                return seen[-1] == _MOST

            wait_until(are_all_open, _SETTLED_S, what)

        check("two workers share the requests")
        join("w3")
        check("a third one joins")
        first.kill()
        first.wait()
        join("w1")
        check("the first one was killed, and is started again")
        second.terminate()
        check("the second one leaves")
        second.wait()
        check("it has left")
        join("w4")
        check("a fourth one joins")
        run.terminate()
        run.wait()
        assert target.take_most() <= _MOST
