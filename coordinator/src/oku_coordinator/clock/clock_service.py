"""Tells workers on other machines what the monotonic clock of this one shows, in a thread of its own.

A question waits for nothing but the interpreter, since the error of a worker is half of the round trip.
"""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable

from oku_core.messaging.clock_exchange import (
    LONGEST_DATAGRAM,
    ClockAnswer,
    decode_question,
    seal_answer,
)
from oku_core.messaging.signing import RejectedMessageError, Signer
from oku_core.process.supervision import Health, keep_going

_PAUSE_S = 0.001
"""After a datagram that is no question, so that a flood of them takes little of the processor."""


class ClockService(threading.Thread):
    """Answers from `start` to `end`.

    Args:
        listening: a UDP socket, which it closes.
        signer: seals the answers.
        kernel: whose monotonic clock is told, as `fetch_kernel_id` names it.
        health: of this thread.
        reject: takes each datagram that is no question, with the address that it came from.
        monotonic_ns: that clock, in nanoseconds.
    """

    def __init__(
        self,
        listening: socket.socket,
        signer: Signer,
        kernel: str,
        health: Health,
        reject: Callable[[RejectedMessageError, str], None],
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        super().__init__(name=health.name, daemon=True)
        self._socket = listening
        self._signer = signer
        self._kernel = kernel
        self._health = health
        self._reject = reject
        self._monotonic_ns = monotonic_ns
        self._ending = threading.Event()
        self._waker, self._woken = socket.socketpair()

    def run(self) -> None:
        """Answer until told to end."""
        self._socket.settimeout(0.0)
        with self._socket, self._woken:
            keep_going(self._health, self._serve, self._ending)

    def end(self) -> None:
        """Let the thread end, and wait for it."""
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
            self._reject(error, str(address[0]))
            self._ending.wait(_PAUSE_S)
            return
        answer = ClockAnswer(nonce=question.nonce, kernel=self._kernel, monotonic_ns=self._monotonic_ns())
        with contextlib.suppress(OSError):  # as lost as on the way; whoever asked asks again
            self._socket.sendto(seal_answer(self._signer, answer), address)
        self._health.note_well()
