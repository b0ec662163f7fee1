"""An address at which nobody ever answers, on the loopback and without any privilege."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def black_hole(host: str, port: int) -> Iterator[None]:
    """An address that answers nobody who connects: its queue is full, so that Linux drops what comes."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server((host, port), backlog=0))
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0)
            filler.connect_ex(full.getsockname())
        yield
