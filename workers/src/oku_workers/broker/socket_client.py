"""The transport of a worker without a broker: one connection to the Unix socket of its coordinator.

The main thread reads; heartbeats and checkpoints are written from their own threads. When the connection
breaks, messages on their way are lost, and the worker connects again, with growing pauses.
"""

import logging
import math
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from oku_core.broker.frames import (
    CHALLENGE_BYTES,
    HEADER_BYTES,
    build_greeting,
    pack_message,
    read_frame_head,
)
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import (
    decode_order,
    open_leases,
    read_sealed,
    seal_checkpoints,
    seal_progress,
)
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import MessageKind, Reject, RejectedMessageError, Signer
from oku_workers.broker.coordinator_link import Notify, WorkerInbox

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0
_SENDS_WITHIN_S = 3
"""A coordinator that reads nothing for longer is frozen: the connection is given up."""
_LOG_EVERY_S = 60.0


class SocketClient:
    """Connects and reads from `run` to `end`.

    Args:
        path: of the socket.
        incarnation: of this process.
        reject: called for each frame that cannot be read.
    """

    passing: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, path: Path, signer: Signer, incarnation: str, reject: Reject) -> None:
        self._path = path
        self._signer = signer
        self._incarnation = incarnation
        self._reject = reject
        self._sending = threading.Lock()
        self._connection: socket.socket | None = None
        """Once it is greeted; only with the lock."""
        self._trial: socket.socket | None = None
        """The connection that the main thread reads."""
        self._ending = threading.Event()
        self._lost_logged_at = -math.inf

    @property
    def is_cut(self) -> bool:
        """Whether there is no connection: nothing is kept elsewhere."""
        return self._connection is None

    def run(self, inbox: WorkerInbox, on_started: Notify, on_ready: Notify) -> int:
        """Receive messages until `end`, through every loss of the connection."""
        on_started()
        pause_s = _FIRST_PAUSE_S
        is_ready = False
        while not self._ending.is_set():
            try:
                self._connect()
                inbox.on_connected()
                if not is_ready:
                    is_ready = True
                    on_ready()
                pause_s = _FIRST_PAUSE_S
                self._read_all(inbox)
            except (OSError, EOFError) as error:
                self._log_loss(error)
            except RejectedMessageError as error:
                self._reject(error)  # the rest of the stream is unreadable, too
            self._disconnect()
            inbox.on_lost()
            self._ending.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return 0

    def end(self) -> None:
        """Let `run` return soon; any thread may call this."""
        self._ending.set()
        if (trial := self._trial) is not None:
            with suppress(OSError):  # it is closed already
                trial.shutdown(socket.SHUT_RDWR)

    def send_checkpoints(self, batch: CheckpointBatch) -> None:
        """Write checkpoints; raise `OSError` without a connection."""
        self._send(MessageKind.CHECKPOINT, seal_checkpoints(self._signer, batch))

    @contextmanager
    def open_progress_channel(self) -> Iterator["SocketClient"]:
        """Heartbeats take the same connection."""
        yield self

    def send(self, progress: Progress) -> None:
        """Write progress; raise `OSError` without a connection."""
        self._send(MessageKind.PROGRESS, seal_progress(self._signer, progress))

    def count_waiting(self) -> int:
        """Nothing is kept elsewhere."""
        return 0

    def _connect(self) -> None:
        connection = self._trial = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Only calls that write end in time: a coordinator may be silent for any time.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SENDS_WITHIN_S, 0))
        connection.connect(os.fsencode(self._path))
        if self._ending.is_set():  # `end` may have come before there was a connection to shut down
            raise ConnectionError("the worker ends")
        challenge = _read(connection, CHALLENGE_BYTES)
        with self._sending:
            connection.sendall(build_greeting(self._signer, challenge, self._incarnation))
            self._connection = connection

    def _disconnect(self) -> None:
        with self._sending:
            self._connection = None
            if self._trial is not None:
                self._trial.close()
                self._trial = None

    def _send(self, kind: MessageKind, sealed: Any) -> None:
        frame = pack_message(kind, sealed)
        with self._sending:
            if self._connection is None:
                raise ConnectionError(f"no coordinator listens at {self._path}")
            try:
                self._connection.sendall(frame)
            except OSError:
                # A part may have been written, so nothing may follow; the main thread connects again.
                with suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)
                self._connection = None
                raise

    def _read_all(self, inbox: WorkerInbox) -> None:
        connection = self._trial
        assert connection is not None
        while True:
            kind, length = read_frame_head(_read(connection, HEADER_BYTES))
            body = _read(connection, length)
            if kind == MessageKind.LEASE:
                inbox.take_leases(partial(self._open_leases, body))
            else:
                inbox.take_order(partial(decode_order, self._signer, body))

    def _open_leases(self, body: bytes) -> LeaseBatch:
        return open_leases(self._signer, read_sealed(body))

    def _log_loss(self, error: Exception) -> None:
        now = time.monotonic()
        if not self._ending.is_set() and now - self._lost_logged_at >= _LOG_EVERY_S:
            self._lost_logged_at = now
            _log.info("the coordinator at %s is away: %s", self._path, str(error) or "it has hung up")


def _read(connection: socket.socket, length: int) -> bytes:
    """Read exactly `length` bytes; raise `EOFError` at the end of the stream."""
    content = bytearray(length)
    view, done = memoryview(content), 0
    while done < length:
        if not (count := connection.recv_into(view[done:])):
            raise EOFError
        done += count
    return bytes(content)
