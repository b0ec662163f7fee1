"""Encodes messages as JSON in a sealed envelope, and checks and decodes received ones.

A few fields are the same in every version of the protocol: which leases a message is about, and who sent it.
So even if a signed message has another version or cannot be read, a worker can refuse the leases, and the
coordinator can name the worker with the other version.
"""

from typing import Any, TypeVar

import msgspec

from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.checkpoint_faults import find_batch_fault
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import Order
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import (
    PROTOCOL,
    MalformedMessageError,
    MessageKind,
    RejectedMessageError,
    Rejection,
    SealedMessage,
    Signer,
)
from oku_core.spec.spec import decode_part, encode_part

_T = TypeVar("_T")

LONGEST_MESSAGE = 32_000_000
"""The longest message, in bytes; checkpoints with a million positions in flight have 8 MB."""


class LeaseHead(msgspec.Struct, frozen=True, kw_only=True):
    """The field of a lease that is the same in every version."""

    id: str


class LeaseBatchHead(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of leases that are the same in every version."""

    run: str
    incarnation: str
    leases: list[LeaseHead]


class MessageSender(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of checkpoints and progress that name their worker in every version."""

    worker: str
    incarnation: str


class UnreadableLeasesError(RejectedMessageError):
    """Leases from the coordinator that this worker cannot read.

    Attributes:
        head: the fields of the leases that every version has.
        rejection: the reason why the leases are not accepted.
    """

    def __init__(self, message: str, head: LeaseBatchHead, rejection: Rejection) -> None:
        super().__init__(message)
        self.head = head
        self.rejection = rejection


class OtherProtocolError(RejectedMessageError):
    """A worker speaks another version of the protocol.

    Attributes:
        worker: the name of the worker.
        protocol: the version that the worker speaks.
    """

    rejection = Rejection.OTHER_PROTOCOL

    def __init__(self, worker: str, protocol: int) -> None:
        super().__init__(f"worker {worker} speaks protocol {protocol}, this coordinator {PROTOCOL}")
        self.worker = worker
        self.protocol = protocol


# Messages are decoded straight into our types: there are thousands, and kombu's decoder visits every object.
_Task = tuple[tuple[SealedMessage], Any, Any]
_TASK_DECODER: JsonDecoder[_Task] = JsonDecoder(_Task)
_SEALED_DECODER: JsonDecoder[SealedMessage] = JsonDecoder(SealedMessage)
_CHECKPOINT_DECODER: JsonDecoder[CheckpointBatch] = JsonDecoder(CheckpointBatch)
_PROGRESS_DECODER: JsonDecoder[Progress] = JsonDecoder(Progress)
_LEASE_DECODER: JsonDecoder[LeaseBatch] = JsonDecoder(LeaseBatch, dec_hook=decode_part)
_LEASE_HEAD_DECODER: JsonDecoder[LeaseBatchHead] = JsonDecoder(LeaseBatchHead)
_ORDER_DECODER: JsonDecoder[Order] = JsonDecoder(Order, dec_hook=decode_part)
_SENDER_DECODER: JsonDecoder[MessageSender] = JsonDecoder(MessageSender)


class _Event(msgspec.Struct, frozen=True):
    """The only field that we read from a Celery event."""

    progress: SealedMessage


_EVENT_DECODER: JsonDecoder[_Event] = JsonDecoder(_Event)


def seal_leases(signer: Signer, batch: LeaseBatch) -> dict[str, Any]:
    """Encode and seal leases."""
    return _seal(signer, MessageKind.LEASE, batch)


def seal_checkpoints(signer: Signer, batch: CheckpointBatch) -> dict[str, Any]:
    """Encode and seal checkpoints."""
    return _seal(signer, MessageKind.CHECKPOINT, batch)


def seal_progress(signer: Signer, progress: Progress) -> dict[str, Any]:
    """Encode and seal progress."""
    return _seal(signer, MessageKind.PROGRESS, progress)


def seal_order(signer: Signer, order: Order) -> dict[str, Any]:
    """Encode and seal an order."""
    return _seal(signer, MessageKind.ORDER, order)


def _seal(signer: Signer, kind: MessageKind, payload: msgspec.Struct) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(
        signer.seal(kind, msgspec.json.encode(payload, enc_hook=encode_part))
    )
    return document


def open_task(signer: Signer, kind: MessageKind, body: bytes | str) -> SealedMessage:
    """Return the argument of a task message in Celery's protocol 2, `[args, kwargs, embedded]` as JSON.

    Raises:
        RejectedMessageError: the body is no task message, or is not signed as this kind.
    """
    sealed = _decode(body, _TASK_DECODER)[0][0]
    signer.check(kind, sealed)
    return sealed


def read_sealed(body: bytes | str) -> SealedMessage:
    """Read a sealed message; its seal is not checked.

    Raises:
        MalformedMessageError: the body is no sealed message.
    """
    return _decode(body, _SEALED_DECODER)


def decode_leases(signer: Signer, document: object) -> LeaseBatch:
    """Decode the argument of a lease task, as `open_leases`."""
    return open_leases(signer, _convert_sealed(document))


def open_leases(signer: Signer, sealed: SealedMessage) -> LeaseBatch:
    """Check and decode leases.

    Raises:
        UnreadableLeasesError: the leases come from the coordinator, but this worker cannot read them.
        RejectedMessageError: the message is not leases from the coordinator.
    """
    signer.check(MessageKind.LEASE, sealed)
    if sealed.protocol != PROTOCOL:
        raise _build_unreadable(sealed, "", Rejection.OTHER_PROTOCOL)
    try:
        return _decode(sealed.body, _LEASE_DECODER)
    except MalformedMessageError as error:
        raise _build_unreadable(sealed, f": {error}", Rejection.MALFORMED) from error


def _build_unreadable(sealed: SealedMessage, why: str, rejection: Rejection) -> UnreadableLeasesError:
    head = _decode(sealed.body, _LEASE_HEAD_DECODER)
    spoken = f"the coordinator speaks protocol {sealed.protocol}, this worker {PROTOCOL}"
    return UnreadableLeasesError(
        f"the lease cannot be read{why} ({spoken}): run the same version of Oku on both", head, rejection
    )


def decode_checkpoints(signer: Signer, body: bytes | str) -> CheckpointBatch:
    """Decode the body of a message in the queue `checkpoints`, as `open_checkpoints`."""
    return open_checkpoints(signer, _decode(body, _TASK_DECODER)[0][0])


def open_checkpoints(signer: Signer, sealed: SealedMessage) -> CheckpointBatch:
    """Check and decode checkpoints.

    Raises:
        OtherProtocolError: the worker speaks another version of the protocol.
        RejectedMessageError: the message is not checkpoints from a worker.
    """
    signer.check(MessageKind.CHECKPOINT, sealed)
    if sealed.protocol != PROTOCOL:
        raise _build_other_protocol(sealed)
    batch = _decode(sealed.body, _CHECKPOINT_DECODER)
    if fault := find_batch_fault(batch):
        raise MalformedMessageError(fault)
    return batch


def decode_progress(signer: Signer, body: bytes | str) -> Progress:
    """Decode the JSON body of a progress event, as `open_progress`."""
    return open_progress(signer, _decode(body, _EVENT_DECODER).progress)


def open_progress(signer: Signer, sealed: SealedMessage) -> Progress:
    """Check and decode progress.

    Raises:
        OtherProtocolError: the worker speaks another version of the protocol.
        RejectedMessageError: the message is not progress from a worker.
    """
    signer.check(MessageKind.PROGRESS, sealed)
    if sealed.protocol != PROTOCOL:
        raise _build_other_protocol(sealed)
    progress = _decode(sealed.body, _PROGRESS_DECODER)
    if fault := progress.find_fault():
        raise MalformedMessageError(fault)
    return progress


def decode_order(signer: Signer, body: bytes | str) -> Order:
    """Decode the body of an order.

    Raises:
        RejectedMessageError: the body is not an order from a coordinator that speaks this version.
    """
    sealed = read_sealed(body)
    signer.check(MessageKind.ORDER, sealed)
    if sealed.protocol != PROTOCOL:
        raise MalformedMessageError(f"an order speaks protocol {sealed.protocol}, this worker {PROTOCOL}")
    return _decode(sealed.body, _ORDER_DECODER)


def _build_other_protocol(sealed: SealedMessage) -> OtherProtocolError:
    return OtherProtocolError(_decode(sealed.body, _SENDER_DECODER).worker, sealed.protocol)


def _convert_sealed(document: object) -> SealedMessage:
    try:
        return msgspec.convert(document, SealedMessage)
    except (msgspec.ValidationError, RecursionError) as error:
        raise MalformedMessageError(str(error)) from error


def _decode(body: bytes | str, decoder: JsonDecoder[_T]) -> _T:
    try:
        return decoder.decode(body)
    except JsonError as error:
        raise MalformedMessageError(str(error)) from error
