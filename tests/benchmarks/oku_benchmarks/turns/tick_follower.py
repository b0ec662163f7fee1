"""Follows the ticks of the one run of a local stack, in a thread, from its beginning to its rest.

A coordinator that is killed on the way is followed again when it is back.
"""

import asyncio
import threading
from contextlib import suppress
from typing import Self

from oku_benchmarks.turns.oku_turn import read_stack
from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint, UnreachableError
from oku_cli.backends.data_dir import DataDir
from oku_core.summary.tick import Tick

_RETRY_S = 0.1


class TickFollower(threading.Thread):
    """Collects ticks from entering to leaving a `with`.

    Args:
        data_dir: of the stack; its API is found once it is written down there.
    """

    def __init__(self, data_dir: DataDir) -> None:
        super().__init__(name="ticks", daemon=True)
        self._data_dir = data_dir
        self._ending = threading.Event()
        self.ticks: list[Tick] = []
        self.run_id = ""
        """Of the run; empty until it is known."""
        self._is_at_rest = False

    def __enter__(self) -> Self:
        """Begin."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ending.set()
        self.join(5.0)

    def run(self) -> None:
        """Find the stack and its run, and follow it."""
        asyncio.run(self._follow())

    async def _follow(self) -> None:
        while not (self._ending.is_set() or self._is_at_rest):
            # Not DataDir.find_endpoint, which tries the lock that `oku run` is about to take.
            if stack := read_stack(self._data_dir):
                # A coordinator that was killed is soon back.
                with suppress(UnreachableError):
                    await self._follow_at(Endpoint(stack["url"], stack["token"]))
            await asyncio.sleep(_RETRY_S)

    async def _follow_at(self, endpoint: Endpoint) -> None:
        async with Client(endpoint) as client:
            while not (runs := await client.fetch_runs()):  # noqa: ASYNC110  # they are asked, they do not call
                await asyncio.sleep(_RETRY_S)
            self.run_id = runs[0]["run"]
            async for item in client.follow(self.run_id):
                if isinstance(item, Tick):
                    self.ticks.append(item)
                else:
                    self._is_at_rest = True
