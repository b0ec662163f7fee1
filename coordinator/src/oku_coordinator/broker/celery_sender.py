"""Sends leases, control and orders to the workers through Celery's broker.

Callers do not wait: a few threads do, each on its own connection.
"""

import logging
import math
import threading
import time
from collections.abc import Iterable, Sequence

from oku_coordinator.broker.outbound_queue import OutboundQueue
from oku_coordinator.broker.sender import Broker, Link
from oku_core.broker.celery_app import App
from oku_core.broker.sending import send_to_workers
from oku_core.broker.transport import find_connection_errors, is_amqp
from oku_core.messaging.order import Outbound
from oku_core.process.clock import Clock

_log = logging.getLogger(__name__)

_THREADS, _MOST_TOGETHER = 2, 100
"""With Redis and Valkey, many messages go out in one round trip."""
_AMQP_THREADS, _AMQP_MOST_TOGETHER = 16, 1
"""RabbitMQ confirms each message: a hundred go to a broker 20 ms away in less than 0.2 s."""
_PATIENCE_S = 2.0
_LOG_EVERY_S = 5.0


class CelerySender(Broker):
    """Sends through queues. While the link is down, it does not try for seconds."""

    def __init__(
        self,
        app: App,
        link: Link,
        clock: Clock = time.monotonic,
    ) -> None:
        super().__init__()
        self._app = app
        self._link = link
        self._clock = clock
        self._errors: tuple[type[Exception], ...] = (OSError, *find_connection_errors(app))
        self._queue = OutboundQueue(clock)
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        amqp = is_amqp(str(app.conf.broker_url))
        self._most_together = _AMQP_MOST_TOGETHER if amqp else _MOST_TOGETHER
        self._sending_since = [math.inf] * (_AMQP_THREADS if amqp else _THREADS)
        """Per thread, when its current call began."""
        self._logged_at = -math.inf

    @property
    def is_away(self) -> bool:
        """Whether the broker is known to be down, or a message has waited for seconds."""
        tried_s = self._clock() - min(self._sending_since)
        return not self._link.is_connected or max(tried_s, self._queue.measure_wait_s()) > _PATIENCE_S

    def send(self, messages: Iterable[Outbound]) -> None:
        """Put leases and orders into the queues of workers; newer ones are merged with waiting ones."""
        # The link reports the outage; when the broker is back, there are newer messages.
        if not self._link.is_connected:
            self._queue.drop()
            return
        self._queue.put(messages)
        if not self._threads:
            self._start_threads()

    def fetch_peak_mb(self) -> float | None:
        """The peak memory of the broker in MB; None when it does not report it, or is down."""
        if not self._link.is_connected:
            return None  # the client would try for seconds
        with self._app.connection_for_read() as connection:
            if connection.transport.driver_type != "redis":
                return None
            try:
                return int(connection.default_channel.client.info("memory")["used_memory_peak"]) / 1e6
            except self._errors as error:
                _log.warning("the broker does not report its memory: %s", error)
                return None

    def end(self, wait_s: float) -> None:
        """Send all waiting messages, for at most this long."""
        self._queue.end()
        until = self._clock() + wait_s
        for thread in self._threads:
            thread.join(max(0.0, until - self._clock()))

    def _start_threads(self) -> None:
        with self._starting:  # both the event loop and a listener send
            if self._threads:
                return
            self._threads = [
                threading.Thread(target=self._send_all, args=[number], name=f"sender-{number}", daemon=True)
                for number in range(len(self._sending_since))
            ]
            for thread in self._threads:
                thread.start()

    def _send_all(self, number: int) -> None:
        while messages := self._queue.get(self._most_together):
            self._sending_since[number] = self._clock()
            try:
                self._send(messages)
            finally:
                self._sending_since[number] = math.inf

    def _send(self, messages: Sequence[Outbound]) -> None:
        try:
            send_to_workers(self._app, messages)
        except self._errors as error:
            self._log_error(len(messages), error)
        except Exception:  # noqa: BLE001  # it is logged, and the others are still to be sent
            if len(messages) == 1:
                _log.exception("a message to workers cannot be sent")
                return
            for message in messages:
                self._send([message])

    def _log_error(self, count: int, error: Exception) -> None:
        now = self._clock()
        if now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = now
            what = "a message" if count == 1 else f"{count} messages"
            _log.warning("the broker did not accept %s to workers: %s", what, error)
