"""Sockets that an engine connects itself before uvloop takes them over."""

import socket
import sys

_BIND_WITHOUT_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of <linux/in.h>; the socket module of Python 3.11 does not name it."""


class LentSocket(socket.socket):
    """A socket that is not closed when it is dropped.

    uvloop takes a connected socket over. If the peer resets the connection at that very moment, uvloop (0.23)
    closes it and leaves the socket with a file number that the next connection gets. Closing that one as well
    would cut off another request, or abort the process in libuv (uvloop issues 645 and 738).
    """

    def __del__(self) -> None:
        """Forget the file."""
        self.detach()


def build_socket(family: int, local_address: str | None) -> LentSocket:
    """A TCP socket that sends from an address, if one is given.

    Raises:
        OSError: the address does not belong to this machine.
    """
    lent = LentSocket(family, socket.SOCK_STREAM)
    lent.setblocking(False)  # noqa: FBT003  # the socket's own signature
    if local_address is None:
        return lent
    try:
        if sys.platform == "linux":
            # The port is chosen when the socket connects. Otherwise the system looks for one that is free for
            # every target, which takes milliseconds when few are left.
            lent.setsockopt(socket.IPPROTO_IP, _BIND_WITHOUT_PORT, 1)
        lent.bind((local_address, 0))
    except OSError:
        lent.close()
        raise
    return lent
