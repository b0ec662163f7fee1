"""Oku in a folder that somebody else has filled: nothing in it becomes part of a run."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import run_coordinator
from tests.kit.runs.local_run import OKU, wait_until

SOUGHT = {
    "celeryconfig",
    "django",
    "eventlet",
    "gevent",
    "sitecustomize",
    "usercustomize",
    "oku_cli",
    "oku_core",
}
"""What Python and Celery import where it is there."""
PROGRAMS = ("valkey-server", "redis-server", "kubectl")


class PoisonedFolder:
    """Has a module for every name that can be imported, each of which leaves a mark when that happens.

    Args:
        folder: what to make it of.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "somebody-elses"
        self._marks = folder / "marks"
        self.path.mkdir()
        self._marks.mkdir()
        for name in {*sys.stdlib_module_names, *importlib.metadata.packages_distributions(), *SOUGHT}:
            mark = f"open({str(self._marks / name)!r}, 'w').close()\n"
            (self.path / f"{name}.py").write_text(f"{mark}raise ImportError('poison')\n")
        for name in PROGRAMS:
            (self.path / name).write_text(f"#!/bin/sh\n: > '{self._marks / name}'\nexit 1\n")
            (self.path / name).chmod(0o755)

    @property
    def marks(self) -> list[str]:
        """What of it was executed."""
        return sorted(mark.name for mark in self._marks.iterdir())


@pytest.fixture
def poisoned(tmp_path: Path) -> PoisonedFolder:
    """A folder in which nobody should start anything."""
    return PoisonedFolder(tmp_path)


def test_a_run_executes_nothing_of_the_folder_it_is_started_in(poisoned: PoisonedFolder) -> None:
    """No module, program or configuration is used, not even for a user of Django and Celery."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "settings",
        "CELERY_CONFIG_MODULE": "celeryconfig",
        "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",
        "PATH": f":.:{os.environ['PATH']}",
    }

    ended = subprocess.run(
        [*OKU, "run", "--requests", "300", "--json"],
        cwd=poisoned.path, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert poisoned.marks == []
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["accounted"] == 300


def test_processes_started_one_by_one_execute_nothing_of_it(poisoned: PoisonedFolder, tmp_path: Path) -> None:
    """A coordinator, a worker and a delay server are started in the folder."""
    ready = [tmp_path / "ready-server", tmp_path / "ready-worker"]
    (tmp_path / "broker").mkdir()
    with run_broker(tmp_path / "broker") as broker_url, pytest.MonkeyPatch.context() as patch:
        patch.chdir(poisoned.path)
        patch.setenv("DJANGO_SETTINGS_MODULE", "settings")
        patch.setenv("CELERY_CONFIG_MODULE", "celeryconfig")
        server = subprocess.Popen([*OKU, "server", "--port", "0", "--ready-file", str(ready[0])])
        worker = subprocess.Popen([*OKU, "worker", "--broker-url", broker_url, "--ready-file", str(ready[1])])
        try:
            with run_coordinator(broker_url, tmp_path / "data") as api:
                wait_until(lambda: all(file.exists() for file in ready), 20, "worker and server are ready")
                run = api.submit(url=f"http://{ready[0].read_text().strip()}/{{i}}", requests=100)
                assert api.wait_for_state(run, "completed")["accounted"] == 100
        finally:
            for process in (server, worker):
                process.terminate()
                process.wait(20)
    assert poisoned.marks == []
