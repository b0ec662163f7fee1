"""Time is simulated here: a test that waits for a minute takes some milliseconds."""

from tests.kit.workers.simulated_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
