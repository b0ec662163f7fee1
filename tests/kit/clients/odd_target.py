"""A target, how it is asked, and what becomes of the request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tests.kit.clients.target_server import Reply, TargetPort
from tests.kit.http2.server import Script


class ClientKind(StrEnum):
    """Everything in Oku that speaks HTTP with a target."""

    AIOHTTP = "aiohttp"
    HTTPTOOLS = "httptools"
    NGHTTP2 = "nghttp2"
    HTTP = "Http of scenarios"
    HTTP_USER = "HttpUser"
    FAST_HTTP_USER = "FastHttpUser"


HTTP1 = frozenset(ClientKind) - {ClientKind.NGHTTP2}
FOLLOWERS = HTTP1 - {ClientKind.HTTPTOOLS}
"""Those with redirections, cookies and proxies."""


class ClientResult(NamedTuple):
    """What became of a request.

    Attributes:
        outcome: as a client has counted it.
        reason: why it has failed; empty if it has not.
        status: of the answer; 0 without one.
        asked: what the target was asked, as `TargetServer.list_asked` has it.
    """

    outcome: str
    reason: str = ""
    status: int = 0
    asked: tuple[str, ...] = ()


OK = ClientResult("ok", "", 200, ("GET /",))


@dataclass(frozen=True)
class OddTarget:
    """One target.

    Attributes:
        replies: what it does with a request, by the path below its name; the first request has an empty path.
        result: what every client makes of it.
        port: where it is.
        url: with the name, the port and the host of a tunnel still in it.
        method: of the request.
        body: of the request; none if it is empty.
        reads_json: whether the value at `/a` of the answer is asked for.
        clients: those that can ask it.
        http2: what it does with a request of HTTP/2.
    """

    replies: Mapping[str, Reply] = field(default_factory=dict)
    result: ClientResult = OK
    port: TargetPort = TargetPort.PLAIN
    url: str = "http://127.0.0.1:{port}/{name}/"
    method: str = "GET"
    body: str = ""
    reads_json: bool = False
    clients: frozenset[ClientKind] = HTTP1
    http2: Script | None = None

    @property
    def may_follow(self) -> bool:
        """Whether redirections and cookies are of interest."""
        return len(self.replies) > 1

    def build_url(self, name: str, ports: Mapping[TargetPort, int]) -> str:
        """Where to ask it."""
        return self.url.format(name=name, port=ports[self.port])
