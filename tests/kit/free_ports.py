"""Ports of loopback that are free, and stay so until a test or a process of it listens there.

A port that the system picks, and that is given back, may be that of the next outgoing connection of anybody.
Those here lie below the ones that Linux gives to outgoing connections, unless it was told otherwise, and
below those that a cluster gives to its services.
"""

import random
import socket

_PORTS = range(10_000, 30_000)
_PICK = random.SystemRandom()
"""Processes that test side by side must not pick alike."""


def pick_port(following: int = 0) -> int:
    """A port at which nobody listens, and nobody at so many that follow it."""
    for port in _PICK.sample(_PORTS, 100):
        if all(map(_is_free, range(port, port + following + 1))):
            return port
    raise OSError("no port of loopback is free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As those who listen there do: a connection that has just ended does not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
