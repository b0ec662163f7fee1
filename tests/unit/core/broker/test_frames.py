import pytest

from oku_core.broker.frames import (
    CHALLENGE_BYTES,
    HEADER_BYTES,
    build_greeting,
    draw_challenge,
    open_greeting,
    pack_message,
    read_frame_head,
)
from oku_core.messaging.codec import LONGEST_MESSAGE, read_sealed, seal_order
from oku_core.messaging.order import Stop
from oku_core.messaging.signing import (
    ForgedMessageError,
    MalformedMessageError,
    MessageKind,
    RejectedMessageError,
    Signer,
)

SIGNER = Signer(b"the key of these tests")


def test_a_frame_has_a_length_a_kind_and_the_sealed_message() -> None:
    """Its body is the JSON that a broker would carry."""
    sealed = seal_order(SIGNER, Stop(run="r1", up_to=1, grace_s=1.0))
    frame = pack_message(MessageKind.ORDER, sealed)
    kind, length = read_frame_head(frame[:HEADER_BYTES])
    assert (kind, length) == (MessageKind.ORDER, len(frame) - HEADER_BYTES)
    assert read_sealed(frame[HEADER_BYTES:]).signature == sealed["signature"]


def test_a_frame_that_is_too_long_or_of_another_kind_is_refused() -> None:
    """Nothing after it on the stream can be read."""
    read_frame_head(LONGEST_MESSAGE.to_bytes(4, "big") + b"\x00")
    for header in ((LONGEST_MESSAGE + 1).to_bytes(4, "big") + b"\x00", b"\x00\x00\x00\x01\x05", b"\xff" * 5):
        with pytest.raises(MalformedMessageError):
            read_frame_head(header)
    with pytest.raises(MalformedMessageError, match="longer than 10 bytes"):
        read_frame_head(b"\x00\x00\x00\x0b\x00", 10)


def test_a_greeting_answers_one_challenge() -> None:
    """A copy of it does not answer the next; neither does one with another key, or another message."""
    challenge, next_challenge = draw_challenge(), draw_challenge()
    assert len(challenge) == CHALLENGE_BYTES
    greeting = build_greeting(SIGNER, challenge, "b1")[HEADER_BYTES:]
    assert open_greeting(SIGNER, challenge, greeting) == "b1"
    with pytest.raises(ForgedMessageError, match="answers another challenge"):
        open_greeting(SIGNER, next_challenge, greeting)
    forged = build_greeting(Signer(b"the key of somebody else"), challenge, "b1")[HEADER_BYTES:]
    order = pack_message(MessageKind.GREETING, seal_order(SIGNER, Stop(run="r", up_to=1, grace_s=1.0)))
    unread = pack_message(MessageKind.GREETING, SIGNER.seal(MessageKind.GREETING, b"[]"))
    for body in (forged, order[HEADER_BYTES:], unread[HEADER_BYTES:], b"", b"{", b"[" * 900 + b"]" * 900):
        with pytest.raises(RejectedMessageError):
            open_greeting(SIGNER, challenge, body)
