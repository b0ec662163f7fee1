"""The listening sockets of a server: one per process, all on the same port.

The kernel spreads connections over them (SO_REUSEPORT). They are opened before any process is forked, so that
a port in use is noticed at once, and connections wait rather than fail while a process restarts. A parent
process can open the sockets and pass them on, so that no other program takes the port before its server
starts.
"""

import errno
import socket
from collections.abc import Sequence
from typing import Any

from oku_core.errors import UserError

ANY_HOST = "*"
"""All addresses of this machine, IPv4 and IPv6."""
BACKLOG = 4096
"""Connections per process that may wait to be accepted; the system may allow fewer (net.core.somaxconn)."""


def open_sockets(host: str, port: int, count: int, flag: str = "--port") -> list[socket.socket]:
    """Open `count` listening sockets on the same port, which is the value of a flag.

    Raises:
        UserError: the port is in use or not permitted, or the host is not an address of this machine.
    """
    family, address = _resolve(host, port)
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            listening = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(listening)
            if host == ANY_HOST and family == socket.AF_INET6:
                # IPv4 clients use the same socket, regardless of the system's default.
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it, so that one whose client has vanished silently is closed in the end.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            # The first socket is bound without SO_REUSEPORT and gets it afterwards: binding then fails if
            # another server has the port, even one that uses SO_REUSEPORT as well.
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
        raise UserError(explain_failure(error, host, port, flag)) from error
    return sockets


def open_datagram_socket(host: str, port: int) -> socket.socket:
    """Open a UDP socket on a port.

    Raises:
        UserError: the port is in use or not permitted, or the host is not an address of this machine.
    """
    family, address = _resolve(host, port)
    opened = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if host == ANY_HOST and family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise UserError(explain_failure(error, host, port)) from error
    return opened


def adopt_sockets(numbers: Sequence[int]) -> list[socket.socket]:
    """Take over listening sockets that the parent process has opened.

    Raises:
        UserError: one of the descriptors is not a listening socket.
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
    """Format the address of a socket as in a URL: `host:port`, with brackets around IPv6."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    if host == ANY_HOST:
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", port)
        return socket.AF_INET, ("0.0.0.0", port)  # noqa: S104  # the user asked for all addresses
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UserError(f"--host: {host!r} is not a host that can be resolved") from error
    family, _, _, _, address = found[0]
    return family, address


def explain_failure(error: OSError, host: str, port: int, flag: str = "--port") -> str:
    """Explain in one line why a server cannot listen, with the flag that is to blame and its value."""
    if error.errno == errno.EADDRINUSE:
        return f"{flag}: {port} is in use on {host}"
    if error.errno == errno.EACCES:
        return f"{flag}: {port} needs privileges that you do not have"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host: {host} is not an address of this machine"
    return f"--host: {host}:{port} cannot be listened on: {error.strerror}"
