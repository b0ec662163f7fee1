"""User code that the kernel kills for memory."""

import threading
from pathlib import Path

from tests.kit.faults.memory_group import memory_group
from tests.kit.user_code import Code, run_user_code_stack

_SIZE = 500_000_000
_SCENARIO = """
import asyncio, pathlib

async def scenario(index):
    await asyncio.sleep(0.02)
    marker = pathlib.Path({marker!r})
    if index == 40 and not marker.exists():
        marker.touch()
        held = bytearray({size})
        held[::4096] = b"x" * len(held[::4096])
"""


def test_user_code_that_is_killed_for_memory_is_reported(tmp_path: Path) -> None:
    """By a notice and an event with the reason; the run goes on, and what was in hand is done again."""
    code: Code = {"scenario.py": _SCENARIO.format(marker=str(tmp_path / "marker"), size=3 * _SIZE)}
    notices: set[str] = set()
    is_over = threading.Event()
    with memory_group(_SIZE) as prefix, run_user_code_stack(tmp_path) as stack:
        stack.start_worker(prefix=prefix)

        def watch() -> None:
            while not is_over.wait(0.2):
                for run in stack.api.list_runs():
                    notices.update(stack.api.summary(run["run"])["notices"])

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            summary = stack.run(code, requests=500, users=4)
        finally:
            is_over.set()
            watching.join()
        _, history = stack.api.call("GET", f"/api/runs/{summary['run']}/history")
    killed = "the kernel killed it for lack of memory (SIGKILL)"
    assert (summary["state"], summary["outcomes"]["ok"]) == ("completed", 500)
    assert f"worker w: the process of the user code has ended: {killed}" in notices
    [event] = [event for event in history["events"] if event["type"] == "host_ended"]
    assert (event["worker"], event["reason"]) == ("w", "out_of_memory")
    assert killed in event["text"]
    assert event["requests"] >= 1
    assert 1 <= summary["resent_at_most"] <= 4
