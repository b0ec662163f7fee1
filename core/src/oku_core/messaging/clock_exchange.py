"""Questions and answers about the coordinator's monotonic clock: datagrams, which no queue delays.

Both are sealed with the key of all messages. An answer bears the nonce of its question, so a replayed
answer is void. A replayed question is answered to any sender: the answer contains no secret.
"""

from typing import TypeVar

import msgspec

from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.messaging.signing import PROTOCOL, MalformedMessageError, MessageKind, SealedMessage, Signer

LONGEST_DATAGRAM = 1000
"""In bytes; it fits into one packet of every network."""

_T = TypeVar("_T")


class ClockQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for the monotonic clock of the coordinator.

    Attributes:
        nonce: random, and never used again.
    """

    nonce: str


class ClockAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of the coordinator's monotonic clock between the question and the answer.

    Attributes:
        nonce: the nonce of the question.
        kernel: whose clock it is, as `fetch_kernel_id` names it.
        monotonic_ns: the reading, in nanoseconds.
    """

    nonce: str
    kernel: str
    monotonic_ns: int


_SEALED_DECODER: JsonDecoder[SealedMessage] = JsonDecoder(SealedMessage)
_QUESTION_DECODER: JsonDecoder[ClockQuestion] = JsonDecoder(ClockQuestion)
_ANSWER_DECODER: JsonDecoder[ClockAnswer] = JsonDecoder(ClockAnswer)


def seal_question(signer: Signer, question: ClockQuestion) -> bytes:
    """Encode and seal a question."""
    return msgspec.json.encode(signer.seal(MessageKind.CLOCK_QUESTION, msgspec.json.encode(question)))


def seal_answer(signer: Signer, answer: ClockAnswer) -> bytes:
    """Encode and seal an answer."""
    return msgspec.json.encode(signer.seal(MessageKind.CLOCK_ANSWER, msgspec.json.encode(answer)))


def decode_question(signer: Signer, datagram: bytes) -> ClockQuestion:
    """Decode a datagram; raise `RejectedMessageError` if it is not the question of a worker."""
    return _open(signer, MessageKind.CLOCK_QUESTION, datagram, _QUESTION_DECODER)


def decode_clock_answer(signer: Signer, datagram: bytes) -> ClockAnswer:
    """Decode a datagram; raise `RejectedMessageError` if it is not the answer of a coordinator."""
    return _open(signer, MessageKind.CLOCK_ANSWER, datagram, _ANSWER_DECODER)


def _open(signer: Signer, kind: MessageKind, datagram: bytes, decoder: JsonDecoder[_T]) -> _T:
    try:
        sealed = _SEALED_DECODER.decode(datagram)
        signer.check(kind, sealed)
        if sealed.protocol != PROTOCOL:
            raise MalformedMessageError(f"a {kind} speaks protocol {sealed.protocol}, not {PROTOCOL}")
        return decoder.decode(sealed.body)
    except JsonError as error:
        raise MalformedMessageError(str(error)) from error
