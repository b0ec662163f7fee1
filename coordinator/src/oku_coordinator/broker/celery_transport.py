"""The transport of a coordinator over a broker."""

from oku_coordinator.broker.celery_inbound import CeleryInbound
from oku_coordinator.broker.celery_sender import CelerySender
from oku_coordinator.broker.inbound import Inbound
from oku_coordinator.broker.sender import Broker, Link
from oku_core.broker.celery_app import build_app
from oku_core.broker.transport import find_connection_errors
from oku_core.messaging.signing import Reject
from oku_core.process.supervision import Supervisor


class CeleryTransport:
    """One application of Celery, whose queues lead to the workers and back."""

    def __init__(self, broker_url: str, message_key: bytes, reject: Reject) -> None:
        self._app = build_app(broker_url, message_key, reject)
        self.passing = find_connection_errors(self._app)

    def build_inbound(self, supervisor: Supervisor) -> Inbound:
        """Build the listeners."""
        return CeleryInbound(self._app, supervisor)

    def build_broker(self, link: Link) -> Broker:
        """Build the sender."""
        return CelerySender(self._app, link)
