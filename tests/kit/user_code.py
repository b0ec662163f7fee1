"""Runs of user code, whose files are uploaded as `oku run` does, and processes that carry them out."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.worker_process import Process, run_worker

from oku_core.spec.values.file_reference import CodeFile

Code = Mapping[str, str]
"""The texts of files by their paths; the first is the scenario, or the locustfile."""


def upload_code(api: CoordinatorApi, code: Code) -> list[CodeFile]:
    """Upload files of user code; gives what a spec calls them, in the same order."""
    return [CodeFile.build(path, api.upload(text.encode(), Path(path).name)) for path, text in code.items()]


def build_code_spec(api: CoordinatorApi, code: Code, **spec: Any) -> dict[str, Any]:
    """The spec of a run of user code, whose files it uploads; a Python scenario unless told otherwise."""
    scenario, *include = upload_code(api, code)
    return {"engine": "python", "scenario": scenario, "include": include, "timeout": "5s", **spec}


def run_code(api: CoordinatorApi, code: Code, timeout_s: float = 60, **spec: Any) -> dict[str, Any]:
    """Have a run of user code carried out; its summary."""
    run = api.submit(**build_code_spec(api, code, **spec))
    return api.wait_for_state(run, "completed", timeout_s)


class UserCodeStack:
    """A broker and a coordinator that allows user code, with workers as a user starts them.

    Args:
        folder: where they write.
        stack: ends them.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.broker_url = stack.enter_context(run_broker(folder))
        self.api = stack.enter_context(
            run_coordinator(self.broker_url, folder / "data", "--files-port", "0", "--allow-user-code")
        )

    def start_worker(self, *flags: str, name: str = "w", prefix: Sequence[str] = ()) -> Process:
        """Start a worker without privileges, as that of a pod is; gives it once it takes leases.

        It does not confine user code, which tells a test by files what it has found.

        Args:
            flags: of `oku worker`.
            name: of the worker.
            prefix: a command that starts the command behind it.
        """
        ready = self.folder / f"{name}.ready"
        ready.unlink(missing_ok=True)
        where = (
            "--files-cache", str(self.folder / f"cache-{name}"), "--grace", "3s", "--ready-file", str(ready),
            "--no-confine-user-code",
        )  # fmt: skip
        log = self.folder / f"{name}.log"
        worker = self._stack.enter_context(
            run_worker(
                self.broker_url, *where, *flags, name=name, log=log,
                prefix=(*prefix, sys.executable, "-c", _WITHOUT_PRIVILEGES),
            )
        )  # fmt: skip
        wait_until(ready.exists, 30, f"{name} takes leases")
        return worker

    def run(self, code: Code, **spec: Any) -> dict[str, Any]:
        """Have a run of user code carried out; its summary."""
        return run_code(self.api, code, **spec)

    def ask(self, function: str, **spec: Any) -> dict[str, Any]:
        """Have user code find something out, once: what the function `find` of this text returns, as JSON."""
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        code = {"scenario.py": _ASK.format(file=str(answer)), "finding.py": function}
        summary = self.run(code, requests=1, users=1, **spec)
        assert summary["outcomes"]["ok"] == 1, summary["failures"]
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


_WITHOUT_PRIVILEGES = """
import os, sys
from oku.sandbox.process_confinement import give_up_privileges
give_up_privileges()
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Also where the tests are run by root, who is kept from its own processes by other means than others are."""
_ASK = """
import finding, json, pathlib

async def scenario(index):
    pathlib.Path({file!r}).write_text(json.dumps(finding.find()))
"""


@contextmanager
def run_user_code_stack(folder: Path) -> Iterator[UserCodeStack]:
    """Runs such a stack, without a worker, until the end of the block."""
    with ExitStack() as stack:
        yield UserCodeStack(folder, stack)
