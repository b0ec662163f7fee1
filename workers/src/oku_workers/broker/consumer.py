"""Celery's consumer, made to outlive a broker that goes and comes back, and to drop messages of strangers."""

import logging
import secrets
from collections.abc import Callable
from typing import Any

import msgspec
from celery.worker.consumer import Consumer
from kombu.transport.pyamqp import Transport as AmqpTransport

from oku_core.broker.celery_app import LEASE_TASK
from oku_core.broker.transport import read_json_body
from oku_core.messaging.codec import open_task
from oku_core.messaging.signing import MalformedMessageError, MessageKind, RejectedMessageError

_log = logging.getLogger(__name__)

TASKS = 1
"""How many messages a worker handles at a time: each takes some milliseconds, and their order is kept."""


class SteadyConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    """Lets a worker go on with its leases whether the broker is there or not.

    When a connection breaks, kombu would put messages that are not acknowledged back; and it acknowledges
    them later over the channel that is gone. Without a broker both end with an AttributeError, and the
    process with it (Celery 5.7.0, kombu 5.7.0). The sender of a lost message sends it again.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        errors: tuple[type[Exception], ...] = self.conninfo.connection_errors
        # A broker that takes no writes, as on a full disk, answers with errors of the channel.
        self.connection_errors = (*errors, *self.conninfo.channel_errors, AttributeError)

    def create_task_handler(self, *arguments: Any, **options: Any) -> Callable[[Any], None]:
        """A function that takes each message; one that the coordinator has not signed is dropped.

        Celery gets only what is signed: the rest of a message could make it wait, run other tasks or send
        answers anywhere.
        """
        handle = super().create_task_handler(*arguments, **options)

        def receive(message: Any) -> None:
            try:
                sealed = open_task(self.app.signer, MessageKind.LEASE, read_json_body(message))
            except RejectedMessageError as error:
                self.app.reject(error)
                message.ack_log_error(_log, self.connection_errors)
                return
            message.body = msgspec.json.encode([[sealed], {}, {}])
            message.headers = {"lang": "py", "task": LEASE_TASK, "id": secrets.token_hex(8)}
            message.properties.pop("reply_to", None)
            handle(message)

        return receive

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """Drop what kombu could not unpack."""
        self.app.reject(MalformedMessageError(str(exc)))
        message.ack_log_error(_log, self.connection_errors)

    def connect(self) -> Any:
        """Connect, for the first time or again."""
        connection = super().connect()
        connection.default_channel.do_restore = False
        return connection


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether a line of Celery's log is worth keeping.

    A message that is taken as its connection ends has an acknowledgement that cannot be sent any more.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_late = isinstance(error, (AttributeError, *AmqpTransport.recoverable_connection_errors))
    return not (is_late and str(record.msg).startswith("Couldn't ack"))
