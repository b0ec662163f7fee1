"""Seals messages with HMAC-SHA256, and rejects those that are forged or malformed.

The signature covers the body as sent, the kind of the message and the version of the protocol, so a message
of one kind never passes for another. Anyone who can reach the broker can still read, drop, delay and replay
messages; the ledger tolerates that. A flood of rejected messages cannot fill the log.
"""

import hmac
import logging
import math
import threading
import time
from collections.abc import Callable
from enum import StrEnum

import msgspec

from oku_core.process.clock import Clock

_LOG_EVERY_S = 60.0


class Rejection(StrEnum):
    """Why a message is rejected."""

    FORGED = "forged"
    """The message is not signed, or not with this key."""
    MALFORMED = "malformed"
    """The message cannot be read, or cannot be true."""
    OTHER_PROTOCOL = "other_protocol"
    """The message is signed, but has another version of the protocol."""


class RejectedMessageError(ValueError):
    """A message is rejected."""

    rejection = Rejection.MALFORMED


class MalformedMessageError(RejectedMessageError):
    """A message is not one that Oku sends."""


class ForgedMessageError(RejectedMessageError):
    """A message is not signed with the shared key."""

    rejection = Rejection.FORGED


Reject = Callable[[RejectedMessageError], None]
"""Is called for each message that is dropped."""


class RejectionLog:
    """Counts rejected messages, and logs them at most once a minute. Any thread may use it.

    Args:
        logger: the logger that gets the lines.
        count: called for each rejected message.
        clock: returns monotonic seconds.
        what: names the rejected messages in the lines.
    """

    def __init__(
        self,
        logger: logging.Logger,
        count: Callable[[Rejection], None] = lambda _: None,
        clock: Clock = time.monotonic,
        what: str = "messages from the broker",
    ) -> None:
        self._what = what
        self._logger = logger
        self._count = count
        self._clock = clock
        self._lock = threading.Lock()
        self._unlogged = 0
        self._logged_at = self._noted_at = -math.inf
        self._total = 0
        self._last = ""

    def record(self, error: RejectedMessageError, peer: str = "") -> None:
        """Count one more rejected message, from the address `peer` where that is known."""
        self._count(error.rejection)
        with self._lock:
            self._noted_at = self._clock()
            self._last = f"{f'from {peer} ' if peer else ''}because {error}"
            self._total += 1
            self._unlogged += 1
            if self._noted_at - self._logged_at < _LOG_EVERY_S:
                return
            unlogged, self._unlogged, self._logged_at = self._unlogged, 0, self._noted_at
            last = self._last
        self._logger.warning("%s were dropped: %d, the last %s", self._what, unlogged, last)

    def describe(self) -> str:
        """Describe dropped messages in one line; empty if there were none in the last minute."""
        with self._lock:
            if self._clock() - self._noted_at > _LOG_EVERY_S:
                return ""
            return f"{self._what} were dropped: {self._total}, the last {self._last}"


PROTOCOL = 13
"""The version of the messages. It rises when an older coordinator or worker would misread them; how messages
are signed is the same in every version."""


class MessageKind(StrEnum):
    """What a message is for.

    Each kind has its own queue or exchange, but those about the clock go by UDP, and tickets by HTTP. A
    greeting begins a connection without a broker.
    """

    LEASE = "lease"
    CHECKPOINT = "checkpoint"
    PROGRESS = "progress"
    ORDER = "order"
    CLOCK_QUESTION = "clock_question"
    CLOCK_ANSWER = "clock_answer"
    FILE_TICKET = "file_ticket"
    GREETING = "greeting"


class SealedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it is sent.

    Attributes:
        protocol: the version of the protocol that the body is written in.
        body: the content of the message as JSON.
        signature: the signature in hexadecimal.
    """

    protocol: int
    body: str
    signature: str


class Signer:
    """Seals messages that are sent, and checks the seals of messages that arrive.

    Args:
        key: the key that only the coordinator and its workers know.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, kind: MessageKind, body: bytes, protocol: int = PROTOCOL) -> SealedMessage:
        """Sign a body, which is JSON."""
        text = body.decode()
        return SealedMessage(protocol=protocol, body=text, signature=self._sign(kind, protocol, text))

    def check(self, kind: MessageKind, sealed: SealedMessage) -> None:
        """Raise `ForgedMessageError` unless the message was sealed as this kind and with this key."""
        signature = self._sign(kind, sealed.protocol, sealed.body)
        # compare_digest takes text only if it is ASCII, which a forged signature need not be.
        if not hmac.compare_digest(signature.encode(), sealed.signature.encode(errors="replace")):
            raise ForgedMessageError(f"a message of kind {kind} is not signed with the key of this process")

    def _sign(self, kind: MessageKind, protocol: int, body: str) -> str:
        return hmac.digest(
            self._key, f"oku {kind} {protocol}\n{body}".encode(errors="surrogatepass"), "sha256"
        ).hex()
