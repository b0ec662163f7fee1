"""Celery's consumer, made to outlive a broker that goes and comes back."""

from typing import Any

from celery.worker.consumer import Consumer


class SteadyConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    """What a worker has in hand it does whether the broker is there or not.

    When a connection breaks, kombu would put the messages of what is in hand back, for others, who refuse
    such copies; and it acknowledges them later over the channel that is gone. Without a broker both end with
    an AttributeError, and the process with it (Celery 5.7.0, kombu 5.7.0).
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        errors: tuple[type[Exception], ...] = self.conninfo.connection_errors
        self.connection_errors = (*errors, AttributeError)

    def connect(self) -> Any:
        """Connect, for the first time or again."""
        connection = super().connect()
        connection.default_channel.do_restore = False
        return connection
