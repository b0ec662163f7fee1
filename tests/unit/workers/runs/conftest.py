"""Time is simulated here: a test that waits takes none."""

from tests.kit.workers.simulated_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
