"""Those who wait for something to take from a feed."""

import asyncio
from collections import deque


class Parking:
    """Wakes those who wait, in the order in which they came."""

    def __init__(self) -> None:
        self._parked: deque[asyncio.Future[None]] = deque()

    @property
    def is_crowded(self) -> bool:
        """Whether more than one waits."""
        return len(self._parked) > 1

    async def wait(self) -> None:
        """Wait to be woken."""
        parked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.append(parked)
        await parked

    def wake(self, most: int) -> None:
        """Wake so many at most."""
        while self._parked and most > 0:
            parked = self._parked.popleft()
            if not parked.done():
                parked.set_result(None)
                most -= 1

    def wake_all(self) -> None:
        """Wake everybody."""
        self.wake(len(self._parked))
