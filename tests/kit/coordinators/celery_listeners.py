"""The listeners of a coordinator with a broker, which a test may declare connected."""

from oku_coordinator.assembly import Assembly
from oku_coordinator.broker.celery_transport import CeleryInbound


def find_listeners(parts: Assembly) -> CeleryInbound:
    """The inbound side of a coordinator that has a broker."""
    inbound = parts.base.inbound
    assert isinstance(inbound, CeleryInbound)
    return inbound
