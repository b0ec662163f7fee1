"""Seals messages, so that nobody forges one who can reach the broker: HMAC-SHA256 under a key that it lacks.

In: a kind and a body of JSON. Out: the body with the version of the protocol and a signature over the bytes
that travel, their kind and that version, so that a message of one kind never passes for another. Who can
reach the broker can still read, lose, delay and repeat messages; the ledger is made for that.
"""

import hmac
from enum import StrEnum

import msgspec

from oku_core.messaging.rejection import ForgedMessageError

PROTOCOL = 2
"""Version of what messages say. It rises when a coordinator or worker of before would misread them; what this
module does with a message stays the same in every version."""
SHORTEST_KEY = 16
"""Bytes."""


class MessageKind(StrEnum):
    """What a message is for; each has a way of its own through the broker."""

    LEASE = "lease"
    REPORT = "report"
    """A claim or a report."""
    PROGRESS = "progress"
    ORDER = "order"


class SealedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What travels.

    Attributes:
        protocol: version of the protocol that its body is written in.
        body: JSON.
        signature: hexadecimal.
    """

    protocol: int
    body: str
    signature: str


class Signer:
    """Seals messages, and checks the seal of those that come.

    Args:
        key: known to the coordinator and its workers alone.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, kind: MessageKind, body: bytes, protocol: int = PROTOCOL) -> SealedMessage:
        """Sign a body of JSON."""
        text = body.decode()
        return SealedMessage(protocol=protocol, body=text, signature=self._sign(kind, protocol, text))

    def check(self, kind: MessageKind, sealed: SealedMessage) -> None:
        """Raise `ForgedMessageError` unless the message was sealed as one of this kind, with this key."""
        signature = self._sign(kind, sealed.protocol, sealed.body)
        # As bytes: a text that is compared may have nothing but ASCII.
        if not hmac.compare_digest(signature.encode(), sealed.signature.encode(errors="replace")):
            raise ForgedMessageError(f"a {kind} is not signed with the key of this process")

    def _sign(self, kind: MessageKind, protocol: int, body: str) -> str:
        return hmac.digest(
            self._key, f"oku {kind} {protocol}\n{body}".encode(errors="surrogatepass"), "sha256"
        ).hex()
