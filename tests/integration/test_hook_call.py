"""A worker calls a hook in a process of its own, which it can end."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.kit.runs.local_run import is_alive, wait_until

from oku_core.messaging.hook import HookAttempt
from oku_core.spec.spec import Engine, Hook, Spec
from oku_core.spec.values.file_reference import CodeFile, FileRef
from oku_core.user_code.messages import Returned
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.engines.user_code.hook_caller import HostLostError, request_hook

SETUP = HookAttempt("r1", Hook.SETUP, 1)


def call(folder: Path, source: str, limit_s: float = 30.0) -> Any:
    """Call the setup of a scenario."""
    path = folder / "code"
    path.write_text(f"from pathlib import Path\nimport os, time\nFOLDER = Path({str(folder)!r})\n{source}")
    scenario = CodeFile.build("a.py", FileRef.build("0" * 64, 1, "a.py"))
    spec = Spec(engine=Engine.PYTHON, scenario=scenario, hooks=(Hook.SETUP,))
    return request_hook(SETUP, spec, EngineContext(find_file=lambda _: path), limit_s)


async def test_a_hook_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """Its process is gone with it, although it blocks."""
    source = "def setup():\n    (FOLDER / 'pid').write_text(str(os.getpid()))\n    time.sleep(60)\n"
    begun = time.monotonic()
    assert await call(tmp_path, source, limit_s=2.0) == Returned(error="it took longer than 2 s")
    assert time.monotonic() - begun < 10
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_alive(pid), 5, "the process has ended")


async def test_a_hook_that_is_cancelled_is_ended(tmp_path: Path) -> None:
    """Whoever waits for it may leave."""
    source = "def setup():\n    (FOLDER / 'pid').write_text(str(os.getpid()))\n    time.sleep(60)\n"
    calling = asyncio.ensure_future(call(tmp_path, source))
    file = tmp_path / "pid"
    await asyncio.to_thread(wait_until, lambda: file.exists() and file.read_text() != "", 10, "it is called")
    pid = int(file.read_text())
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    wait_until(lambda: not is_alive(pid), 5, "the process has ended")


async def test_a_hook_whose_process_ends_has_no_answer(tmp_path: Path) -> None:
    """How it ended is said."""
    with pytest.raises(HostLostError, match=r"^its process has ended: it exited with code 7$"):
        await call(tmp_path, "def setup():\n    os._exit(7)\n")


async def test_a_hook_sees_its_files_and_what_it_prints_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Line by line, as of iterations."""
    caplog.set_level("INFO")
    source = "def setup():\n    print('one')\n    print('two')\n    return Path('a.py').exists()\n"
    assert await call(tmp_path, source) == Returned("true")
    lines = [record.getMessage() for record in caplog.records if "user code" in record.getMessage()]
    assert lines == ["user code: one", "user code: two"]


async def test_a_request_that_a_hook_does_not_await_fails_it(tmp_path: Path) -> None:
    """It was not sent: what the scenario relies on is not there."""
    source = "async def setup(http):\n    http.post('http://127.0.0.1:9/')\n"
    assert await call(tmp_path, source) == Returned(error="line 5: http.post(…) was not awaited")


async def test_what_a_hook_leaves_behind_does_not_keep_its_answer_back(tmp_path: Path) -> None:
    """A task that does not let itself be cancelled ends with the process."""
    source = """
import asyncio

async def go_on():
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            pass

async def setup():
    global task
    task = asyncio.create_task(go_on())
    await asyncio.sleep(0)
    return 1
"""
    assert await call(tmp_path, source, limit_s=10.0) == Returned("1")
