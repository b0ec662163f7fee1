"""Celery's consumer, made to outlive a broker that goes and comes back."""

import logging
from typing import Any

from celery.worker.consumer import Consumer
from kombu.transport.pyamqp import Transport as AmqpTransport

from oku_core.messaging import LEASES_IN_HAND

TASKS = 16
"""So many tasks a worker may do at a time.

It takes `LEASES_IN_HAND` messages from the broker, but those that it had from a connection that is gone do
not count, and what comes with full hands must be claimed, or refused, as soon as any other.
"""


class SteadyConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    """What a worker has in hand it does whether the broker is there or not.

    When a connection breaks, kombu would put the messages of what is in hand back, for others, who refuse
    such copies; and it acknowledges them later over the channel that is gone. Without a broker both end with
    an AttributeError, and the process with it (Celery 5.7.0, kombu 5.7.0).
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **(options | {"initial_prefetch_count": self.max_prefetch_count}))
        errors: tuple[type[Exception], ...] = self.conninfo.connection_errors
        self.connection_errors = (*errors, AttributeError)

    @property
    def max_prefetch_count(self) -> int:
        """Messages that the broker gives before one is acknowledged; Celery's is one for each task."""
        return LEASES_IN_HAND

    def connect(self) -> Any:
        """Connect, for the first time or again."""
        connection = super().connect()
        connection.default_channel.do_restore = False
        return connection


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether a line of Celery's says something new.

    Each lease that outlives its connection ends with an acknowledgement for which there is none any more.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_late = isinstance(error, (AttributeError, *AmqpTransport.recoverable_connection_errors))
    return not (is_late and str(record.msg).startswith("Couldn't ack"))
