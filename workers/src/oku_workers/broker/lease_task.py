"""The Celery task of leases: its message is checked, and handed to the event loop.

The message is acknowledged on intake. It is a hint: whatever becomes of its leases is told by checkpoints.
"""

import logging
from functools import partial
from typing import Any

from oku_core.broker.celery_app import LEASE_TASK, App
from oku_core.messaging.codec import UnreadableLeasesError, decode_leases
from oku_core.messaging.signing import RejectedMessageError
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.loop_thread import LoopThread

_log = logging.getLogger(__name__)


class LeaseTask:
    """Takes leases from the broker; each call runs in a thread of Celery's.

    Args:
        app: knows the key of messages.
        loop_thread: the event loop.
        runner: runs leases, in that loop.

    Attributes:
        count: how many messages have come.
    """

    def __init__(self, app: App, loop_thread: LoopThread, runner: LeaseRunner) -> None:
        self._app = app
        self._loop_thread = loop_thread
        self._runner = runner
        self.count = 0

    def register(self) -> None:
        """Have Celery call this for each message of leases."""

        @self._app.task(name=LEASE_TASK, shared=False)
        def take_leases(document: Any) -> None:
            self._take(document)

    def _take(self, document: Any) -> None:
        self.count += 1
        try:
            batch = decode_leases(self._app.signer, document)
        except UnreadableLeasesError as error:
            _log.error("leases are refused: %s", error, extra={"run": error.head.run})
            self._loop_thread.ask(partial(self._runner.refuse, error.head, str(error)))
        except RejectedMessageError as error:
            self._app.reject(error)
        else:
            # Waiting for the loop keeps messages in the broker while it is busy.
            self._loop_thread.ask(lambda: self._runner.take(batch))
