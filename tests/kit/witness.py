"""A witness of the machine: for how long it did not let this process run, while a test measured a time."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_NAP_S = 0.01


class Witness:
    """Naps, and sums by how much its naps are too long."""

    stalled_s = 0.0

    async def nap(self) -> None:
        """Go on until cancelled."""
        while True:
            wakes_at = time.monotonic() + _NAP_S
            await asyncio.sleep(_NAP_S)
            self.stalled_s += time.monotonic() - wakes_at


@asynccontextmanager
async def witnessing() -> AsyncIterator[Witness]:
    """A witness beside the block, to be asked after it."""
    witness = Witness()
    naps = asyncio.create_task(witness.nap())
    yield witness
    await asyncio.sleep(_NAP_S)  # a nap that has begun in the block ends
    naps.cancel()
