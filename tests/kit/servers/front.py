"""A TCP port before a server on a Unix socket: with TLS, or with connections that fall silent."""

import select
import socket
import ssl
import threading
from contextlib import suppress
from typing import Self

_PIECE_BYTES = 65_536
_LOOK_S = 0.1


class Front:
    """Serves on a free port of all of the loopback, one client after the other or at once.

    Args:
        path: of the socket behind it.
        tls: how it shows itself; there is no TLS without it.

    Attributes:
        port: where it listens.
        handshakes: how many went well.
    """

    def __init__(self, path: str, tls: ssl.SSLContext | None = None) -> None:
        self._path = path
        self._tls = tls
        self._listener = socket.create_server(("0.0.0.0", 0))
        self._listener.settimeout(_LOOK_S)
        self._ending = threading.Event()
        self._silences = 0
        self._threads = [threading.Thread(target=self._accept)]
        self.port = self._listener.getsockname()[1]
        self.handshakes = 0

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up on everybody."""
        self._ending.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def fall_silent(self) -> None:
        """Carry nothing any more over the connections that are there, as when a node has died."""
        self._silences += 1

    def _accept(self) -> None:
        while not self._ending.is_set():
            with suppress(TimeoutError):
                thread = threading.Thread(target=self._serve, args=(self._listener.accept()[0],))
                thread.start()
                self._threads.append(thread)

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), self._shake_hands(client) as outer:
            self.handshakes += 1
            with socket.socket(socket.AF_UNIX) as inner:
                inner.connect(self._path)
                self._carry(outer, inner)

    def _shake_hands(self, client: socket.socket) -> socket.socket:
        return self._tls.wrap_socket(client, server_side=True) if self._tls else client

    def _carry(self, outer: socket.socket, inner: socket.socket) -> None:
        began = self._silences
        while not self._ending.is_set():
            ready = select.select([outer, inner], [], [], _LOOK_S)[0]
            if self._silences > began:
                self._ending.wait()
                return
            for source, sink in ((outer, inner), (inner, outer)):
                if source in ready:
                    piece = source.recv(_PIECE_BYTES)
                    if not piece:
                        return
                    sink.sendall(piece)
