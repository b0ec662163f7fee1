"""Where a transport puts the messages of the coordinator."""

from collections.abc import Callable
from typing import Protocol

from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import Order


class WorkerInbox(Protocol):
    """Takes what arrives, in a thread of the transport. Both read the message with what they are given."""

    def on_connected(self) -> None:
        """There is a new connection."""

    def on_lost(self) -> None:
        """A connection without a broker is lost, with all that was on its way."""

    def take_leases(self, read: Callable[[], LeaseBatch]) -> None:
        """Take leases, or refuse those that cannot be read."""

    def take_order(self, read: Callable[[], Order]) -> None:
        """Obey an order."""
