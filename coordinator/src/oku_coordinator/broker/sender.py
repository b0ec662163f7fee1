"""The coordinator's way to its workers: leases and orders go out by the broker."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from oku_core.messaging.celery_app import App
from oku_core.messaging.lease import Lease
from oku_core.messaging.order import HeartbeatInterval, Order, Stop
from oku_core.messaging.sending import send_lease, send_order
from oku_core.messaging.transport import find_connection_errors

_log = logging.getLogger(__name__)

_PATIENCE_S = 2.0
_MOST_ORDERS = 4


class Broker:
    """Sends leases and orders.

    Args:
        app: the application.
        is_connected: whether the broker answers others; where it does not, nothing is tried for seconds.
    """

    def __init__(self, app: App, is_connected: Callable[[], bool] = lambda: True) -> None:
        self._app = app
        self._is_connected = is_connected
        self._errors: tuple[type[Exception], ...] = (OSError, *find_connection_errors(app))
        self._thread = ThreadPoolExecutor(1, "orders")
        self._interval_number = 0
        self._orders: dict[Future[None], float] = {}
        """Those that were given last, with when that was, in monotonic seconds."""

    @property
    def is_away(self) -> bool:
        """Whether it is known that the broker does not answer, or an order has waited for it for seconds."""
        waits_since = min(self._find_waiting().values(), default=math.inf)
        return time.monotonic() - waits_since > _PATIENCE_S or not self._is_connected()

    def send_leases(self, leases: Sequence[Lease]) -> int:
        """Put leases into the queue, in this order; how many the broker took before it did not take one.

        It blocks, and may be called from any thread.
        """
        for sent, lease in enumerate(leases):
            try:
                send_lease(self._app, lease)
            except self._errors as error:
                context = {"run": lease.run, "lease": lease.id}
                _log.warning("the broker did not take lease %s: %s", lease.id, error, extra=context)
                return sent
        return len(leases)

    def send_stop(self, *, run: str | None, up_to: int = 0, leases: Sequence[str], grace_s: float) -> None:
        """Tell all workers to stop with the leases of a run up to a number, or with single leases.

        It returns at once; the order may be lost.
        """
        self._give_order(Stop(run=run, up_to=up_to, leases=list(leases), grace_s=grace_s))

    def send_heartbeat_interval(self, interval_s: float) -> None:
        """Tell all workers how often to send progress.

        It returns at once; the order may be lost.
        """
        # Above those of a coordinator that was here before, unless the clock was put back.
        self._interval_number = max(self._interval_number + 1, time.time_ns())
        self._give_order(HeartbeatInterval(number=self._interval_number, interval_s=interval_s))

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

    def _give_order(self, order: Order) -> None:
        self._orders = self._find_waiting()
        # Who listens says that the broker is away, and orders are repeated until they have done their work.
        if len(self._orders) < _MOST_ORDERS and self._is_connected():
            self._orders[self._thread.submit(self._send_order, order)] = time.monotonic()

    def _find_waiting(self) -> dict[Future[None], float]:
        return {order: at for order, at in self._orders.items() if not order.done()}

    def _send_order(self, order: Order) -> None:
        try:
            send_order(self._app, order)
        except self._errors as error:
            context = {"run": order.run} if isinstance(order, Stop) else {}
            _log.warning(
                "the broker did not take the order %s: %s", order.__struct_config__.tag, error, extra=context
            )
