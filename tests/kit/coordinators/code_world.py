"""A broker, a coordinator that gives files, and workers: real processes that run a scenario."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.free_ports import pick_port
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.worker_process import Process, run_worker

from oku_core.spec.values.file_reference import CodeFile


class CodeWorld:
    """A world in a folder; its processes end with `stack`.

    Attributes:
        folder: where scenarios may write, too.
        api: of the coordinator, once it was started.
        workers: those that were started, by name.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.api: CoordinatorApi
        self.workers: dict[str, Process] = {}
        self._stack = stack
        self._coordinator = ExitStack()
        stack.callback(self._coordinator.close)
        self._broker_url = stack.enter_context(run_broker(folder))
        self._files_port = str(pick_port())

    def start_coordinator(self) -> CoordinatorApi:
        """Start the coordinator, or one after the other has ended."""
        self.api = self._coordinator.enter_context(
            run_coordinator(
                self._broker_url,
                self.folder / "data",
                "--files-port",
                self._files_port,
                "--worker-timeout",
                "3s",
            )
        )
        return self.api

    def kill_coordinator(self) -> None:
        """Kill it at once."""
        os.kill(self.api.pid, signal.SIGKILL)
        self._coordinator.close()

    def start_worker(self, name: str) -> Process:
        """Start a worker, whose user code may write what a test reads."""
        flags = ("--files-cache", str(self.folder / f"cache-{name}"), "--no-confine-user-code")
        log = self.folder / f"{name}.log"
        process = self._stack.enter_context(run_worker(self._broker_url, *flags, name=name, log=log))
        self.workers[name] = process
        return process

    def upload(self, path: str, text: str) -> str:
        """Upload a file of user code; what a spec names it by."""
        return CodeFile.build(path, self.api.upload(text.encode(), path))

    def submit(self, scenario: str, **spec: Any) -> str:
        """Submit a run of a scenario; its id."""
        return self.api.submit(engine="python", scenario=self.upload("scenario.py", scenario), **spec)

    def read_lines(self, name: str) -> list[str]:
        """The lines that a scenario has written to a file of the folder."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def wait_for_lines(self, name: str, count: int) -> list[str]:
        """Wait until there are so many."""
        wait_until(lambda: len(self.read_lines(name)) >= count, 30, f"{name} has {count} lines")
        return self.read_lines(name)
