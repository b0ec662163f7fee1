"""A broker, a coordinator, workers and a delay server that stay, for many short runs after each other."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi, run_coordinator
from tests.kit.runs.local_run import OKU, sum_series, wait_until
from tests.kit.servers.delay_server import Start
from tests.kit.workers.worker_process import run_worker

_RUN_S = 60


class StandingStack:
    """Carries out runs one by one.

    Args:
        api: of its coordinator.
        ledger: that the coordinator keeps.
    """

    def __init__(self, api: CoordinatorApi, ledger: Path) -> None:
        self.api = api
        self.ledger = ledger

    def run(self, *flags: str) -> dict[str, Any]:
        """Run `oku run` to its end; what `--json` says. Without a URL it asks the delay server.

        The seconds that are kept of it must sum to its account. Nothing but a run without a single good
        answer may fail.
        """
        where = ("--coordinator", self.api.url, "--token", TOKEN, "--json", "--quiet")
        ended = subprocess.run(
            [*OKU, "run", *flags, *where], capture_output=True, text=True, timeout=_RUN_S, check=False
        )
        assert ended.returncode in (0, 1), ended.stderr
        summary: dict[str, Any] = json.loads(ended.stdout)
        assert ended.returncode == (0 if summary["outcomes"]["ok"] else 1), ended.stderr
        assert sum_series(self.ledger, summary["run"]) == summary["outcomes"]
        return summary


@contextmanager
def run_standing_stack(folder: Path, workers: int) -> Iterator[StandingStack]:
    """Runs a stack until the end of the block, whose workers are there from the beginning."""
    servers = Start(folder)
    with ExitStack() as stack:
        stack.callback(servers.end)
        broker_url = stack.enter_context(run_broker(folder))
        target = ("--server-url", servers().url)
        api = stack.enter_context(run_coordinator(broker_url, folder / "data", *target))
        for number in range(workers):
            name = f"worker-{number + 1}"
            stack.enter_context(run_worker(broker_url, name=name, log=folder / f"{name}.log"))
        wait_until(lambda: api.read_metric("oku_workers") == workers, 30, "the workers are there")
        yield StandingStack(api, folder / "data" / "ledger.sqlite3")
