import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.messaging.clock_exchange import (
    LONGEST_DATAGRAM,
    ClockAnswer,
    ClockQuestion,
    decode_clock_answer,
    decode_question,
    seal_answer,
    seal_question,
)
from oku_core.messaging.signing import (
    PROTOCOL,
    ForgedMessageError,
    MalformedMessageError,
    MessageKind,
    RejectedMessageError,
    Signer,
)

SIGNER = Signer(b"a key of this test")
QUESTION = ClockQuestion(nonce="ab" * 16)
ANSWER = ClockAnswer(nonce="ab" * 16, kernel="x" * 60, monotonic_ns=2**62)


def test_questions_and_answers_arrive_as_they_were_sent() -> None:
    """Each in one small packet."""
    question, answer = seal_question(SIGNER, QUESTION), seal_answer(SIGNER, ANSWER)
    assert decode_question(SIGNER, question) == QUESTION
    assert decode_clock_answer(SIGNER, answer) == ANSWER
    assert max(len(question), len(answer)) < LONGEST_DATAGRAM
    # A question is no answer. What is of one kind cannot be passed off as the other.
    with pytest.raises(ForgedMessageError):
        decode_clock_answer(SIGNER, seal_question(SIGNER, QUESTION))
    with pytest.raises(ForgedMessageError):
        decode_question(SIGNER, seal_answer(SIGNER, ANSWER))
    # What was changed on its way is forged. A digit of the time, for example.
    with pytest.raises(ForgedMessageError):
        decode_clock_answer(SIGNER, seal_answer(SIGNER, ANSWER).replace(b"4611", b"4612"))


@pytest.mark.parametrize(
    ("body", "protocol"), [({"nonce": 1}, PROTOCOL), ({}, PROTOCOL), ({"nonce": "ab"}, PROTOCOL + 1)]
)
def test_a_signed_datagram_that_cannot_be_read_is_malformed(body: dict[str, object], protocol: int) -> None:
    """It may be of another version."""
    sealed = SIGNER.seal(MessageKind.CLOCK_QUESTION, json.dumps(body).encode(), protocol)
    datagram = {"protocol": sealed.protocol, "body": sealed.body, "signature": sealed.signature}
    with pytest.raises(MalformedMessageError):
        decode_question(SIGNER, json.dumps(datagram).encode())


@given(st.binary(max_size=200))
def test_nothing_that_anybody_sends_raises_anything_else(datagram: bytes) -> None:
    """A stranger can send any bytes."""
    with pytest.raises(RejectedMessageError):
        decode_question(SIGNER, datagram)
