"""The two ways between a coordinator and its workers: Celery over a broker, and Unix sockets without one.

Both carry the same sealed messages, and both may lose any of them. The URL of the broker decides. Celery is
loaded only for a broker: it takes a tenth of a second.
"""

from typing import Protocol

from oku_coordinator.broker.inbound import Inbound
from oku_coordinator.broker.sender import Broker, Link
from oku_coordinator.settings import CoordinatorSettings
from oku_core.broker.socket_url import find_socket_path
from oku_core.messaging.signing import Reject, Signer
from oku_core.process.supervision import Supervisor


class CoordinatorTransport(Protocol):
    """Builds the way to the workers and the way back."""

    @property
    def passing(self) -> tuple[type[Exception], ...]:
        """Errors of connections, which pass by themselves."""

    def build_inbound(self, supervisor: Supervisor) -> Inbound:
        """Build the way from the workers."""

    def build_broker(self, link: Link) -> Broker:
        """Build the way to the workers, once there is one from them."""


def build_coordinator_transport(
    settings: CoordinatorSettings, signer: Signer, reject: Reject
) -> CoordinatorTransport:
    """Build the transport that the settings name.

    Raises:
        UserError: they name none, or its socket cannot be used.
    """
    if (path := find_socket_path(settings.broker_url)) is not None:
        from oku_coordinator.broker.socket_transport import SocketTransport  # noqa: PLC0415

        return SocketTransport(path, settings.broker_listen_fd, signer, reject)
    from oku_coordinator.broker.celery_transport import CeleryTransport  # noqa: PLC0415

    return CeleryTransport(settings.broker_url, settings.message_key, reject)
