"""Where the connections of the httptools engine go, and which of them are idle there."""

import ssl
from abc import abstractmethod
from typing import Generic, TypeVar

from yarl import URL

from oku_workers.engines.http.connector import Connector, OriginConnection


class IdleConnection(OriginConnection):
    """A connection, as far as its origin knows it."""

    __slots__ = ()

    @property
    @abstractmethod
    def is_usable(self) -> bool:
        """Whether it can take a request."""


AnyConnection = TypeVar("AnyConnection", bound=IdleConnection)


class Origin(Connector, Generic[AnyConnection]):
    """One scheme, host and port.

    Args:
        url: scheme, host and port.
        tls: how to speak TLS; None to speak none.
        local_address: what to connect from; the system chooses unless given.
    """

    def __init__(self, url: URL, tls: ssl.SSLContext | None, local_address: str | None = None) -> None:
        super().__init__(url, tls, local_address)
        self.idle: dict[AnyConnection, None] = {}
        """Connections that wait for a request, the one that was used last at the end."""

    def pop_idle(self) -> AnyConnection | None:
        """A connection that can take a request, if there is one."""
        while self.idle:
            connection, _ = self.idle.popitem()
            if connection.is_usable:
                return connection
        return None
