"""Serves the monotonic clock of this machine to workers on other machines, in its own thread.

A request waits for nothing but the interpreter, because the error of a worker is half of the round trip.
"""

import contextlib
import ipaddress
import selectors
import socket
import threading
import time
from collections.abc import Callable

from oku_coordinator.clock.clock_store import ClockAddress, ClockStore
from oku_coordinator.settings import CoordinatorSettings
from oku_core.messaging.clock_exchange import (
    LONGEST_DATAGRAM,
    ClockAnswer,
    decode_question,
    seal_answer,
)
from oku_core.messaging.signing import RejectedMessageError, RejectionLog, Signer
from oku_core.process.listener import open_datagram_socket
from oku_core.process.supervision import Health, keep_going

_PAUSE_S = 0.001
"""After an invalid datagram, so that a flood of them takes little CPU time."""


class ClockService(threading.Thread):
    """Answers from `start` to `end`.

    Args:
        listening: a UDP socket, which it closes.
        kernel: the id of the kernel whose clock is served, from `fetch_kernel_id`.
        rejections: logs invalid datagrams.
    """

    def __init__(
        self,
        listening: socket.socket,
        signer: Signer,
        kernel: str,
        health: Health,
        rejections: RejectionLog,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        super().__init__(name=health.name, daemon=True)
        self._socket = listening
        self._signer = signer
        self._kernel = kernel
        self._health = health
        self._rejections = rejections
        self._monotonic_ns = monotonic_ns
        self._ending = threading.Event()
        self._waker, self._woken = socket.socketpair()

    def run(self) -> None:
        """Answer requests until `end`."""
        self._socket.settimeout(0.0)
        with self._socket, self._woken:
            keep_going(self._health, self._serve, self._ending)

    def end(self) -> None:
        """Stop the thread and wait for it."""
        self._ending.set()
        self._waker.close()
        if self.is_alive():
            self.join()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in (self._socket, self._woken):
                selector.register(each, selectors.EVENT_READ)
            while not self._ending.is_set():
                selector.select()
                if not self._ending.is_set():
                    self._answer()

    def _answer(self) -> None:
        try:
            datagram, address = self._socket.recvfrom(LONGEST_DATAGRAM)
        except BlockingIOError:
            return  # its checksum was wrong
        try:
            question = decode_question(self._signer, datagram)
        except RejectedMessageError as error:
            self._rejections.record(error, str(address[0]))
            self._ending.wait(_PAUSE_S)
            return
        answer = ClockAnswer(nonce=question.nonce, kernel=self._kernel, monotonic_ns=self._monotonic_ns())
        with contextlib.suppress(OSError):  # as if lost on the way; the worker asks again
            self._socket.sendto(seal_answer(self._signer, answer), address)
        self._health.record_success()


def open_clock(
    settings: CoordinatorSettings,
    api_socket: socket.socket,
    store: ClockStore,
    signer: Signer,
    health: Health,
    rejections: RejectionLog,
) -> ClockService | None:
    """Serve the clock at the port of the API; None if the API is only for this machine.

    Raises `UserError` if the port is taken.
    """
    api_address = api_socket.getsockname()[:2]
    address = find_clock_address(api_address, socket.gethostname(), settings.clock_host, settings.clock_port)
    if address is None:
        return None
    store.address = address
    host = settings.host if settings.listen_fd is None else api_address[0]
    listening = open_datagram_socket(host, api_address[1])
    return ClockService(listening, signer, store.kernel, health, rejections)


def find_clock_address(
    api_address: tuple[str, int], own_name: str, host: str | None = None, port: int | None = None
) -> ClockAddress | None:
    """The address of the clock for workers; None if the API is only for processes of this machine.

    Args:
        api_address: the IP address and the port that the API listens on.
        own_name: the name of this machine.
        host: its name for workers, if it is set.
        port: the port for workers, if it is another one.
    """
    address = ipaddress.ip_address(api_address[0].partition("%")[0])
    if host is None:
        if address.is_loopback:
            return None
        host = own_name if address.is_unspecified else str(address)
    return ClockAddress(host, port or api_address[1]) if host else None
