"""Frames: how sealed messages travel on a stream between coordinator and worker, without a broker.

A frame is the length of its body in four bytes, the kind of the message in one, and the body: the sealed
message as JSON, as a broker would carry it. Before any message, the coordinator sends a challenge, and the
worker answers with a sealed greeting that repeats it: a process without the key sends and receives nothing.
"""

import secrets
import struct

import msgspec

from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.messaging.codec import LONGEST_MESSAGE, read_sealed
from oku_core.messaging.signing import (
    ForgedMessageError,
    MalformedMessageError,
    MessageKind,
    SealedMessage,
    Signer,
)

_HEADER = struct.Struct(">IB")
HEADER_BYTES = _HEADER.size
_KINDS = (
    MessageKind.LEASE,
    MessageKind.CHECKPOINT,
    MessageKind.PROGRESS,
    MessageKind.ORDER,
    MessageKind.GREETING,
)
"""The kinds of messages that travel in frames, in the order of their numbers."""
CHALLENGE_BYTES = 32
LONGEST_GREETING = 1_000


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker sends first.

    Attributes:
        challenge: the coordinator's challenge, in hexadecimal.
        incarnation: the process of the worker, to which messages for it are sent.
    """

    challenge: str
    incarnation: str


_GREETING_DECODER: JsonDecoder[Greeting] = JsonDecoder(Greeting)


def pack_message(kind: MessageKind, sealed: object) -> bytes:
    """Build the frame of a sealed message."""
    body = msgspec.json.encode(sealed)
    return _HEADER.pack(len(body), _KINDS.index(kind)) + body


def read_frame_head(header: bytes, longest: int = LONGEST_MESSAGE) -> tuple[MessageKind, int]:
    """Read the kind of a message and the length of its body.

    Raises:
        MalformedMessageError: the kind is unknown, or the body is too long.
    """
    length, number = _HEADER.unpack(header)
    if number >= len(_KINDS):
        raise MalformedMessageError(f"a frame is of kind {number}")
    if length > longest:
        raise MalformedMessageError(f"a message is longer than {longest:,} bytes")
    return _KINDS[number], length


def draw_challenge() -> bytes:
    """Draw a challenge, which no greeting has answered before."""
    return secrets.token_bytes(CHALLENGE_BYTES)


def build_greeting(signer: Signer, challenge: bytes, incarnation: str) -> bytes:
    """Build the frame by which a worker answers a challenge."""
    greeting = Greeting(challenge=challenge.hex(), incarnation=incarnation)
    return pack_message(
        MessageKind.GREETING, signer.seal(MessageKind.GREETING, msgspec.json.encode(greeting))
    )


def open_greeting(signer: Signer, challenge: bytes, body: bytes) -> str:
    """Check a greeting, and return the incarnation of the worker.

    Raises:
        RejectedMessageError: the greeting is not signed, or does not answer this challenge.
    """
    sealed: SealedMessage = read_sealed(body)
    signer.check(MessageKind.GREETING, sealed)
    try:
        greeting = _GREETING_DECODER.decode(sealed.body)
    except JsonError as error:
        raise MalformedMessageError(str(error)) from error
    if greeting.challenge != challenge.hex():
        raise ForgedMessageError("a greeting answers another challenge")
    return greeting.incarnation
