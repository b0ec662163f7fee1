"""Puts checkpoints into the queue of the broker, in a thread of its own: the event loop does not wait."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from oku_core.messaging.celery_app import App
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.sending import send_checkpoints


class CheckpointSender:
    """Sends one message after the other.

    Args:
        app: where they go.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._thread = ThreadPoolExecutor(1, "checkpoints")

    async def send(self, batch: CheckpointBatch) -> None:
        """Return when the broker has them; raise kombu's `OperationalError` if it is unavailable."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, send_checkpoints, self._app, batch)

    def end(self) -> None:
        """Send nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
