"""The listening sockets of a server: one for each process, all on one port.

The kernel spreads connections over them (SO_REUSEPORT). They are made before any process is forked, so that
a port in use is found at once, and connections wait rather than fail while a process is started again. Who
starts a server may have made them for it: then nobody else can take the port before it does.
"""

import errno
import socket
from collections.abc import Sequence
from typing import Any

from oku_core.errors import UserError

ANY_HOST = "*"
"""All addresses of this machine, of IPv4 and of IPv6."""
BACKLOG = 4096
"""Connections that wait to be accepted, for each process; the system may allow less (net.core.somaxconn)."""


def open_sockets(host: str, port: int, count: int) -> list[socket.socket]:
    """Listen `count` times on the same port.

    Raises:
        UserError: the port is in use or not permitted, or the host is none of this machine.
    """
    family, address = _resolve(host, port)
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            listening = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(listening)
            if host == ANY_HOST and family == socket.AF_INET6:
                # Clients of IPv4 come to the same socket, whatever the system's default is.
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it: that of a client which vanished without a word ends some day.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            # The first socket is bound without sharing and shares afterwards: it fails if another server,
            # one that shares its port too, has that port.
            if len(sockets) > 1:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind(address)
            if count > 1:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.listen(BACKLOG)
            address = listening.getsockname()
    except OSError as error:
        for listening in sockets:
            listening.close()
        raise UserError(explain_failure(error, host, port)) from error
    return sockets


def adopt_sockets(numbers: Sequence[int]) -> list[socket.socket]:
    """Take over listening sockets that whoever started this process has left open, by their numbers.

    Raises:
        UserError: one of them is not a listening socket.
    """
    return [_adopt_socket(number) for number in numbers]


def _adopt_socket(number: int) -> socket.socket:
    try:
        adopted = socket.socket(fileno=number)
    except (OSError, OverflowError) as error:
        raise UserError(f"--listen-fd: {number} is not an open socket") from error
    if not adopted.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        adopted.close()
        raise UserError(f"--listen-fd: {number} is not a listening socket")
    adopted.set_inheritable(False)
    return adopted


def format_address(listening: socket.socket) -> str:
    """`host:port` of a socket, as it stands in a URL."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    if host == ANY_HOST:
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", port)
        return socket.AF_INET, ("0.0.0.0", port)  # noqa: S104  # it was asked for
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UserError(f"--host: {host!r} is not a host that can be resolved") from error
    family, _, _, _, address = found[0]
    return family, address


def explain_failure(error: OSError, host: str, port: int) -> str:
    """The flag that cannot be listened on, its value and why."""
    if error.errno == errno.EADDRINUSE:
        return f"--port: {port} is in use on {host}"
    if error.errno == errno.EACCES:
        return f"--port: {port} needs privileges that you do not have"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host: {host} is not an address of this machine"
    return f"--host: {host}:{port} cannot be listened on: {error.strerror}"
