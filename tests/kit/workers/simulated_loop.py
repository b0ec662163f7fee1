"""An event loop whose time is that of a test: with nothing to do, it is the next timer's time at once."""

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any


class _Selector(selectors.SelectSelector):
    """Waits for nothing; the time that it should have waited goes by."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        """As a selector that nothing happens to."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everybody waits, and nobody will ever come")
        if not ready and timeout:
            self.now += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Begins at 1000 s."""

    def __init__(self) -> None:
        self._own_selector = _Selector()
        super().__init__(self._own_selector)

    def time(self) -> float:
        """The time, in seconds."""
        return self._own_selector.now


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loops of the tests in a folder whose `conftest` imports this."""
    return {"simulated": SimulatedLoop}
