"""Runs `oku` with its event loop watched: `python watched_loop.py FILE ARGUMENT...`.

Each time the loop comes to its timers later than it should, a line goes to the file: the Unix time, and by
how many seconds it was late. The script imports nothing but the command, so that it can watch that of another
checkout, too.
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
        due = time.monotonic() + _EVERY_S
        await asyncio.sleep(_EVERY_S)
        late_s = time.monotonic() - due
        if late_s > _NOTED_S:
            _FILE.write(f"{time.time():.3f} {late_s:.4f}\n")


if __name__ == "__main__":
    _FILE = Path(sys.argv.pop(1)).open("a", buffering=1)  # noqa: SIM115  # until the end
    asyncio.run = watch
    runpy.run_module("oku_cli", run_name="__main__", alter_sys=True)
