"""Seals messages with HMAC-SHA256, so that nobody can forge one just because they can reach the broker.

The signature covers the body as sent, the kind of the message and the version of the protocol, so a message
of one kind never passes for another. Anyone who can reach the broker can still read, drop, delay and replay
messages; the ledger tolerates that.
"""

import hmac
from enum import StrEnum

import msgspec

from oku_core.messaging.rejection import ForgedMessageError

PROTOCOL = 11
"""The version of the messages. It rises when an older coordinator or worker would misread them; how messages
are signed is the same in every version."""


class MessageKind(StrEnum):
    """What a message is for.

    Each kind has its own queue or exchange, but those about the clock go by UDP, and tickets by HTTP.
    """

    LEASE = "lease"
    CHECKPOINT = "checkpoint"
    PROGRESS = "progress"
    ORDER = "order"
    CLOCK_QUESTION = "clock_question"
    CLOCK_ANSWER = "clock_answer"
    FILE_TICKET = "file_ticket"


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
