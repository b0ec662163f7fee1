"""Odd targets over raw sockets: a thread per connection sends the bytes that a table has for each path.

A path begins with the name of its target: `/early-413/there`. Each target may have several replies, one for
each path below its name. In what is sent, `{here}` is the path of the target, `{origin}` and `{host}` where
it listens, and `{other}` another origin on the same machine.
"""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import partial
from itertools import groupby

_PATIENCE_S = 30.0
_PAUSE_S = 0.02
_LONGEST_PIECE = 1 << 16
_TLS_HANDSHAKE = b"\x16"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_NOT_UNDERSTOOD = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Ending(StrEnum):
    """What a target does with a connection after it has sent something."""

    KEEP = auto()
    """Wait for the next request."""
    CLOSE = auto()
    """Send nothing more, but read until the client hangs up."""
    RESET = auto()
    """Ending it with an RST."""
    STALL = auto()
    """Do nothing more."""


@dataclass(frozen=True)
class Reply:
    """What a target does with a request.

    Attributes:
        parts: what it sends, each so long after the one before that it arrives by itself.
        end: what it does then.
        reads_body: whether it reads the body of the request before.
        waits: whether the client says something more between the parts.
    """

    parts: tuple[bytes, ...] = ()
    end: Ending = Ending.KEEP
    reads_body: bool = True
    waits: bool = False


class TargetPort(StrEnum):
    """What a port of the server speaks."""

    PLAIN = "plain"
    OTHER = "other"
    """Plain as well: another origin."""
    TLS = "tls"
    EXPIRED = "expired"
    OTHER_NAME = "other name"
    SELF_SIGNED = "self-signed"
    UNKNOWN_AUTHORITY = "unknown authority"
    OLD_TLS = "no HTTP/2"
    """Its TLS knows of no other protocol than HTTP/1.1."""
    HANGS_UP = "hangs up"
    """Closes each connection when it has read the first bytes of the client."""
    RESETS = "resets"
    """Resets each connection then."""
    NO_HTTP = "no HTTP"
    """Says something else then."""
    UNUSED_PLAIN = "plain, asked by TLS"
    UNUSED_TLS = "TLS, asked without"
    """Clients that keep connections by host and port would take one of another scheme."""
    PROXY = "proxy"
    """Its targets are the names of hosts to which tunnels are to lead."""


_NO_REPLIES: Mapping[str, Reply] = {}
_FOUND = Reply((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",))
"""The reply to every other path."""


class TargetServer:
    """Serves on ports of the loopback until it is closed.

    Args:
        replies: what each target does, by its name and the path below that.
        contexts: the TLS of the listeners that speak it.

    Attributes:
        ports: where each listener is.
        connections: how many were made to each listener.
    """

    def __init__(
        self, replies: Mapping[str, Mapping[str, Reply]], contexts: Mapping[TargetPort, ssl.SSLContext]
    ) -> None:
        self._replies = replies
        self._contexts = contexts
        self._asked: dict[str, list[str]] = defaultdict(list)
        self._sockets = {
            listener: socket.create_server(("127.0.0.1", 0), backlog=512) for listener in TargetPort
        }
        self._open: set[socket.socket] = set()
        self.ports = {listener: each.getsockname()[1] for listener, each in self._sockets.items()}
        self.connections: Counter[TargetPort] = Counter()
        for listener, each in self._sockets.items():
            _start(partial(self._accept, listener, each))

    def list_asked(self, target: str) -> tuple[str, ...]:
        """The requests that came for a target: method, path below its name, cookies and body.

        Those that came several times in a row are there once, with their number.
        """
        runs = ((said, len(list(run))) for said, run in groupby(self._asked[target]))
        return tuple(f"{said} ({count} times)" if count > 1 else said for said, count in runs)

    def close(self) -> None:
        """Ending the listeners and every connection."""
        for each in (*self._sockets.values(), *list(self._open)):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listener: TargetPort, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client = listening.accept()[0]
                self.connections[listener] += 1
                self._open.add(client)
                _start(partial(self._serve, listener, client))

    def _serve(self, listener: TargetPort, client: socket.socket) -> None:
        try:
            with client:
                client.settimeout(_PATIENCE_S)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if listener is TargetPort.HANGS_UP:
                    client.recv(_LONGEST_PIECE)
                elif listener is TargetPort.RESETS:
                    client.recv(_LONGEST_PIECE)
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                elif listener is TargetPort.NO_HTTP:
                    client.recv(_LONGEST_PIECE)
                    self._say(client, b"220 mail.example ESMTP\r\n")
                elif listener is TargetPort.UNUSED_TLS and client.recv(1, socket.MSG_PEEK) != _TLS_HANDSHAKE:
                    self._say(client, _NOT_UNDERSTOOD)
                elif (context := self._contexts.get(listener)) is not None:
                    with context.wrap_socket(client, server_side=True) as over_tls:
                        self._answer_all(listener, over_tls)
                else:
                    self._answer_all(listener, client)
        except OSError:  # the client has had enough
            pass
        finally:
            self._open.discard(client)

    def _answer_all(self, listener: TargetPort, client: socket.socket) -> None:
        received = b""
        while True:
            while b"\r\n\r\n" not in received:
                piece = client.recv(_LONGEST_PIECE)
                if not piece:
                    return
                received += piece
                if received.startswith((_TLS_HANDSHAKE, b"PRI ")):
                    self._say(client, _NOT_UNDERSTOOD)
                    return
            head, _, received = received.partition(b"\r\n\r\n")
            request = _Request.parse(head)
            name, path = request.split(is_proxy=listener is TargetPort.PROXY)
            reply = self._replies.get(name, _NO_REPLIES).get(path, _FOUND)
            body = b""
            if reply.reads_body:
                while len(received) < request.length:
                    received += client.recv(_LONGEST_PIECE)
                body, received = received[: request.length], received[request.length :]
            where = "other " if listener is TargetPort.OTHER else ""
            self._asked[name].append(where + request.describe(path, body))
            if not self._perform(reply, client, f"/{name}"):
                return

    def _say(self, client: socket.socket, content: bytes) -> None:
        client.sendall(content)
        client.shutdown(socket.SHUT_WR)
        while client.recv(_LONGEST_PIECE):
            pass

    def _perform(self, reply: Reply, client: socket.socket, here: str) -> bool:
        """Whether the connection goes on."""
        for number, part in enumerate(reply.parts):
            if number and reply.waits:
                client.recv(_LONGEST_PIECE)
            elif number:
                time.sleep(_PAUSE_S)
            client.sendall(self._fill(part, here))
        if reply.end is Ending.KEEP:
            return True
        if reply.end is Ending.RESET:
            time.sleep(_PAUSE_S)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        elif reply.reads_body:  # else it closes at once, and what it has not read resets the connection
            if reply.end is Ending.CLOSE and not isinstance(client, ssl.SSLSocket):
                client.shutdown(socket.SHUT_WR)
            if reply.end is Ending.STALL or not isinstance(client, ssl.SSLSocket):
                while client.recv(_LONGEST_PIECE):
                    pass
        return False

    def _fill(self, part: bytes, here: str) -> bytes:
        for name, value in (
            ("{here}", here),
            ("{origin}", f"http://127.0.0.1:{self.ports[TargetPort.PLAIN]}"),
            ("{host}", f"127.0.0.1:{self.ports[TargetPort.PLAIN]}"),
            ("{other}", f"http://127.0.0.1:{self.ports[TargetPort.OTHER]}"),
        ):
            part = part.replace(name.encode(), value.encode())
        return part


@dataclass(frozen=True)
class _Request:
    method: str
    target: str
    headers: dict[str, str]

    @classmethod
    def parse(cls, head: bytes) -> "_Request":
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines)
        return cls(method, target, {name.lower(): value.strip() for name, _, value in pairs})

    @property
    def length(self) -> int:
        return int(self.headers.get("content-length", "0"))

    def split(self, *, is_proxy: bool) -> tuple[str, str]:
        """The name of the target, and the path below it."""
        if is_proxy and self.method == "CONNECT":
            return self.target.partition(".")[0], ""
        target = self.target.partition("://")[2].partition("/")[2] if is_proxy else self.target
        name, _, path = target.lstrip("/").partition("/")
        return name, path

    def describe(self, path: str, body: bytes) -> str:
        cookie = self.headers.get("cookie", "")
        said = [f"{self.method} /{path}"]
        said += [f"Cookie: {'; '.join(sorted(cookie.split('; ')))}"] if cookie else []
        said += [body.decode("latin-1")] if body else []
        return ", ".join(said)


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()
