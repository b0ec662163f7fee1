"""What servers of HTTP/1.1 and of HTTP/2 have in common, for tests of what all engines do."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from tests.kit.http2.server import Http2Server
from tests.kit.servers.hostile_server import HostileServer, Request

AnyServer = HostileServer | Http2Server
ServeAny = Callable[..., Awaitable[AnyServer]]
"""Starts a server with a script."""


class AnyExchange(Protocol):
    """One request and the ways to answer it."""

    @property
    def request(self) -> Request:
        """What came."""
        ...

    async def respond(
        self, status: int = 200, body: bytes = b"", *headers: tuple[str, str], pause_s: float = 0.0
    ) -> None:
        """Answer as a whole, or with a pause between head and body."""
        ...

    def hang_up(self) -> None:
        """Close the connection."""
        ...

    def reset(self) -> None:
        """End the connection with an RST."""
        ...


async def answer(exchange: AnyExchange) -> None:
    """Answer well."""
    await exchange.respond(body=b"hi")
