"""The coordinator's way to its workers: leases, control and orders go out by the broker.

Whoever sends goes on at once; a few threads wait for the broker, each on a connection of its own. Whatever is
lost on the way is repeated by those who sent it: leases that their workers do not name, control that answers
the next checkpoint, orders until they have had their effect.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable

from oku_coordinator.broker.outbound_queue import Outbound, OutboundQueue
from oku_core.messaging.celery_app import App
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import Control, Intervals, Stop
from oku_core.messaging.sending import send_control, send_leases, send_order
from oku_core.messaging.transport import find_connection_errors

_log = logging.getLogger(__name__)

_THREADS = 16
"""A hundred leases go to a broker 20 ms away in less than 0.2 s."""
_PATIENCE_S = 2.0
_LOG_EVERY_S = 5.0


class Broker:
    """Sends what workers are to hear.

    Args:
        app: the application.
        is_connected: whether the broker answers others; where it does not, nothing is tried for seconds.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        app: App,
        is_connected: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._is_connected = is_connected
        self._clock = clock
        self._errors: tuple[type[Exception], ...] = (OSError, *find_connection_errors(app))
        self._queue = OutboundQueue(clock)
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._sending_since = [math.inf] * _THREADS
        """For each thread: since when it has been sending what it sends now."""
        self._interval_number = 0
        self._logged_at = -math.inf

    @property
    def is_away(self) -> bool:
        """Whether it is known that the broker does not answer, or a message has waited for it for seconds."""
        tried_s = self._clock() - min(self._sending_since)
        return not self._is_connected() or max(tried_s, self._queue.measure_wait_s()) > _PATIENCE_S

    def send_leases(self, batches: Iterable[LeaseBatch]) -> None:
        """Put leases into the queues of their workers."""
        self._put(batches)

    def send_controls(self, controls: Iterable[Control]) -> None:
        """Tell workers what was decided on their leases; it is merged with what they have not heard yet."""
        self._put(controls)

    def send_stop(self, *, run: str, up_to: int, grace_s: float) -> None:
        """Tell all workers to stop with the leases of a run up to a number."""
        self._put([Stop(run=run, up_to=up_to, grace_s=grace_s)])

    def send_intervals(self, heartbeat_s: float, checkpoint_s: float) -> None:
        """Tell all workers how often to send progress and checkpoints."""
        # Above those of a coordinator that was here before, unless the clock was put back.
        self._interval_number = max(self._interval_number + 1, time.time_ns())
        self._put(
            [Intervals(number=self._interval_number, heartbeat_s=heartbeat_s, checkpoint_s=checkpoint_s)]
        )

    def fetch_peak_mb(self) -> float | None:
        """The most memory that the broker has allocated, in MB; None when it does not say so, or is away."""
        if not self._is_connected():
            return None  # the client would try for seconds
        with self._app.connection_for_read() as connection:
            if connection.transport.driver_type != "redis":
                return None
            try:
                return int(connection.default_channel.client.info("memory")["used_memory_peak"]) / 1e6
            except self._errors as error:
                _log.warning("the broker does not say how large it is: %s", error)
                return None

    def end(self, wait_s: float) -> None:
        """Send what waits, for at most so long."""
        self._queue.end()
        until = self._clock() + wait_s
        for thread in self._threads:
            thread.join(max(0.0, until - self._clock()))

    def _put(self, messages: Iterable[Outbound]) -> None:
        # Who listens says that the broker is away; by the time that it is back there is newer news.
        if not self._is_connected():
            self._queue.drop()
            return
        for message in messages:
            self._queue.put(message)
        if not self._threads:
            self._start_threads()

    def _start_threads(self) -> None:
        with self._starting:  # both the event loop and a listener send
            if self._threads:
                return
            self._threads = [
                threading.Thread(target=self._send_all, args=[number], name=f"sender-{number}", daemon=True)
                for number in range(_THREADS)
            ]
            for thread in self._threads:
                thread.start()

    def _send_all(self, number: int) -> None:
        while message := self._queue.take():
            self._sending_since[number] = self._clock()
            try:
                self._send(message)
            except self._errors as error:
                self._log_error(message, error)
            except Exception:  # noqa: BLE001  # the others are still to be sent
                _log.exception("a message to workers cannot be sent")
            finally:
                self._sending_since[number] = math.inf

    def _send(self, message: Outbound) -> None:
        if isinstance(message, LeaseBatch):
            send_leases(self._app, message)
        elif isinstance(message, Control):
            send_control(self._app, message)
        else:
            send_order(self._app, message)

    def _log_error(self, message: Outbound, error: Exception) -> None:
        now = self._clock()
        if now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = now
            what = "leases" if isinstance(message, LeaseBatch) else message.__struct_config__.tag
            _log.warning("the broker did not take %s: %s", what, error)
