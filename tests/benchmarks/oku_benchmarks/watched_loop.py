"""Runs `oku` with its event loop watched: `python watched_loop.py FILE ARGUMENT...`.

Each time the loop comes to its timers later than it should, a line goes to the file: the Unix time, by how
many seconds it was late, and how many seconds of CPU time the process took meanwhile. The loop waits for its
own work, and for other threads that have the interpreter or the ledger: so on a machine that does nothing
else, it would have been late by as much CPU time at most, and by what the disk takes.

The script imports nothing but the command, so that it can watch that of another checkout, too.
"""

import asyncio
import runpy
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

_EVERY_S = 0.01
_NOTED_S = 0.02
_run = asyncio.run


def watch(main: Coroutine[Any, Any, Any], **options: Any) -> Any:
    """Does what `asyncio.run` does."""
    return _run(_watch(main), **options)


async def _watch(main: Coroutine[Any, Any, Any]) -> Any:
    watching = asyncio.create_task(_note_gaps())
    try:
        return await main
    finally:
        watching.cancel()


async def _note_gaps() -> None:
    while True:
        due, began_cpu_s = time.monotonic() + _EVERY_S, time.process_time()
        await asyncio.sleep(_EVERY_S)
        late_s = time.monotonic() - due
        if late_s > _NOTED_S:
            cpu_s = time.process_time() - began_cpu_s
            _FILE.write(f"{time.time():.3f} {late_s:.4f} {cpu_s:.4f}\n")


if __name__ == "__main__":
    _FILE = Path(sys.argv.pop(1)).open("a", buffering=1)  # noqa: SIM115  # until the end
    asyncio.run = watch
    runpy.run_module("oku_cli", run_name="__main__", alter_sys=True)
