import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.messaging.codec import (
    OtherProtocolError,
    UnreadableLeaseError,
    decode_lease,
    decode_message,
    decode_order,
    decode_progress,
    seal_lease,
    seal_message,
    seal_order,
    seal_progress,
)
from oku_core.messaging.lease import Claim, Lease, Report
from oku_core.messaging.order import HeartbeatInterval, Order, Stop
from oku_core.messaging.progress import Progress
from oku_core.messaging.rejection import (
    ForgedMessageError,
    MalformedMessageError,
    RejectedMessageError,
    Rejection,
)
from oku_core.messaging.signing import PROTOCOL, MessageKind, Signer
from oku_core.spec.spec import Spec, encode_part
from oku_core.spec.values.url import Url

SIGNER = Signer(b"a key of this test")
LEASE = Lease(
    id="r1.7.aa", run="r1", start=5, stop=10**15, start_by=1.7e9, spec=Spec(urls=(Url("http://h/{i}"),))
)
CLAIM = Claim(lease="r1.7.aa", execution="e1", worker="w1", incarnation="b1", at=1.7e9)
REPORT = Report(
    lease="r1.7.aa",
    execution="e1",
    worker="w1",
    incarnation="b1",
    start=5,
    done=8,
    outcomes=[0, 0, 3, 0, 0, 0],
    started_at=1.7e9,
    ended_at=1.7e9,
)
PROGRESS = Progress(worker="w1", incarnation="b1", at=1.7e9, sequence=3, leases={"l1": [1, 0, 0, 0, 0, 0]})
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def as_task(sealed: object) -> bytes:
    """Build the body of a task message with this argument."""
    return msgspec.json.encode([[sealed], {}, {"callbacks": None}])


def as_event(sealed: object) -> bytes:
    """Build the body of an event."""
    return msgspec.json.encode({"progress": sealed, "type": "oku-progress", "clock": 3})


def seal(kind: MessageKind, document: object, protocol: int = PROTOCOL) -> dict[str, Any]:
    """Sign any document."""
    sealed: dict[str, Any] = msgspec.to_builtins(SIGNER.seal(kind, msgspec.json.encode(document), protocol))
    return sealed


def test_a_lease_is_read_as_it_was_sealed() -> None:
    """The worker gets the lease exactly as the coordinator has cut it."""
    assert decode_lease(SIGNER, seal_lease(SIGNER, LEASE)) == LEASE


@pytest.mark.parametrize("message", [CLAIM, REPORT])
def test_claims_and_reports_are_read_as_they_were_sealed(message: Claim | Report) -> None:
    """Each message keeps its type."""
    assert decode_message(SIGNER, as_task(seal_message(SIGNER, message))) == message


def test_progress_is_read_as_it_was_sealed() -> None:
    """It is read from a Celery event."""
    assert decode_progress(SIGNER, as_event(seal_progress(SIGNER, PROGRESS))) == PROGRESS


@pytest.mark.parametrize(
    "order", [Stop(run="r1", up_to=7, grace_s=2.5), Stop(run=None, leases=["l1"], grace_s=0.0),
              HeartbeatInterval(number=3, interval_s=2.0)],
)  # fmt: skip
def test_orders_are_read_as_they_were_sealed(order: Order) -> None:
    """Each order keeps its type."""
    assert decode_order(SIGNER, msgspec.json.encode(seal_order(SIGNER, order))) == order


@pytest.mark.parametrize("signer", [Signer(b""), Signer(b"the key of somebody else")])
def test_a_message_with_another_key_is_forged(signer: Signer) -> None:
    """This holds for every kind of message."""
    for decode in (
        lambda: decode_lease(SIGNER, seal_lease(signer, LEASE)),
        lambda: decode_message(SIGNER, as_task(seal_message(signer, REPORT))),
        lambda: decode_progress(SIGNER, as_event(seal_progress(signer, PROGRESS))),
        lambda: decode_order(SIGNER, msgspec.json.encode(seal_order(signer, Stop(run="r1", grace_s=0.0)))),
    ):
        with pytest.raises(ForgedMessageError):
            decode()


def test_a_message_without_a_signature_is_malformed() -> None:
    """Messages from before signatures existed look like this."""
    with pytest.raises(MalformedMessageError):
        decode_message(SIGNER, as_task(msgspec.to_builtins(REPORT)))
    with pytest.raises(MalformedMessageError):
        decode_lease(SIGNER, msgspec.to_builtins(LEASE, enc_hook=encode_part))


@given(JSON_VALUES)
def test_any_json_is_rejected_unless_it_is_ours(document: object) -> None:
    """Whatever a message contains, signed or not, reading it raises only `RejectedMessageError`."""
    text = json.dumps(document)
    with pytest.raises(RejectedMessageError):
        decode_lease(SIGNER, document)
    for body in (text, json.dumps([[document], {}, {}]), json.dumps({"progress": document})):
        for decode in (decode_message, decode_progress, decode_order):
            with pytest.raises(RejectedMessageError):
                decode(SIGNER, body)
    sealed = {kind: msgspec.to_builtins(SIGNER.seal(kind, text.encode())) for kind in MessageKind}
    for read in (
        lambda: decode_lease(SIGNER, sealed[MessageKind.LEASE]),
        lambda: decode_message(SIGNER, as_task(sealed[MessageKind.REPORT])),
        lambda: decode_progress(SIGNER, as_event(sealed[MessageKind.PROGRESS])),
        lambda: decode_order(SIGNER, msgspec.json.encode(sealed[MessageKind.ORDER])),
    ):
        with pytest.raises(RejectedMessageError):
            read()


@pytest.mark.parametrize(
    "change",
    [
        {"type": "lease"},
        {"type": "claim"},
        {"done": True},
        {"done": 3.5},
        {"outcomes": None},
    ],
)
def test_a_signed_report_with_a_wrong_part_is_malformed(change: dict[str, object]) -> None:
    """A faulty worker does not stop the coordinator."""
    document = msgspec.to_builtins(REPORT) | change
    if change == {"type": "claim"}:
        document["at"] = "now"
    sealed = SIGNER.seal(MessageKind.REPORT, json.dumps(document).encode())
    with pytest.raises(MalformedMessageError, match=r"^[^\n]+$"):
        decode_message(SIGNER, as_task(msgspec.to_builtins(sealed)))


def test_unknown_fields_of_a_message_are_ignored() -> None:
    """A newer worker may add fields."""
    sealed = seal(MessageKind.REPORT, msgspec.to_builtins(CLAIM) | {"colour": "red"})
    assert decode_message(SIGNER, as_task(sealed)) == CLAIM


def test_progress_that_cannot_be_true_is_malformed() -> None:
    """This holds even if it is signed."""
    sealed = seal(MessageKind.PROGRESS, msgspec.to_builtins(PROGRESS) | {"outcomes": [1]})
    with pytest.raises(MalformedMessageError, match=r"^the outcomes are not six counts$"):
        decode_progress(SIGNER, as_event(sealed))


# Other versions

NEWER: dict[str, Any] = {"id": "r1.7.aa", "run": "r1", "start": 5, "ranges": [[5, 9]], "plan": {"waves": 3}}
"""A lease of a future protocol: the fields that every version has, and one that this version lacks."""


def test_a_lease_of_another_protocol_is_identified_and_refused() -> None:
    """The error names both versions and the id of the lease."""
    with pytest.raises(UnreadableLeaseError) as caught:
        decode_lease(SIGNER, seal(MessageKind.LEASE, NEWER, PROTOCOL + 1))
    assert caught.value.rejection == Rejection.OTHER_PROTOCOL
    assert (caught.value.head.id, caught.value.head.run, caught.value.head.start) == ("r1.7.aa", "r1", 5)
    assert f"the coordinator speaks protocol {PROTOCOL + 1}, this worker {PROTOCOL}" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [{"start_by": "x"}, {"spec": None}, {"spec": {"colour": "red"}}, {"spec": {"engine": "steam"}}],
)
def test_a_lease_with_an_unknown_part_is_refused(change: dict[str, object]) -> None:
    """If an unknown key of a spec were ignored, other requests would be sent than the user asked for."""
    sealed = seal(MessageKind.LEASE, msgspec.to_builtins(LEASE, enc_hook=encode_part) | change)
    with pytest.raises(UnreadableLeaseError, match=r"^the lease cannot be read: [^\n]+$") as caught:
        decode_lease(SIGNER, sealed)
    assert caught.value.head.id == LEASE.id


def test_a_refusal_is_understood_in_every_protocol() -> None:
    """It is how a worker answers a lease that it cannot read."""
    refusal = {
        "type": "report",
        "lease": "r1.7.aa",
        "execution": "e1",
        "worker": "w9",
        "incarnation": "b9",
        "start": 5,
        "done": "five",
        "refusal": "the lease cannot be read",
        "mood": "sad",
    }
    report = decode_message(SIGNER, as_task(seal(MessageKind.REPORT, refusal, PROTOCOL + 1)))
    assert isinstance(report, Report)
    assert (report.lease, report.start, report.done, report.covered) == ("r1.7.aa", 5, 5, 0)
    assert (report.worker, report.incarnation, report.execution) == ("w9", "b9", "e1")
    assert report.refusal == "the lease cannot be read"


@pytest.mark.parametrize(
    "read",
    [
        lambda: decode_progress(
            SIGNER, as_event(seal(MessageKind.PROGRESS, {"worker": "w9", "incarnation": "b9"}, 9))
        ),
        lambda: decode_message(SIGNER, as_task(seal(MessageKind.REPORT, msgspec.to_builtins(CLAIM), 9))),
        lambda: decode_message(SIGNER, as_task(seal(MessageKind.REPORT, msgspec.to_builtins(REPORT), 9))),
    ],
)
def test_a_worker_of_another_protocol_is_named(read: Callable[[], object]) -> None:
    """People need to know which worker it is."""
    with pytest.raises(OtherProtocolError, match=r"^worker w[19] speaks protocol 9, this coordinator 2$"):
        read()


def test_an_order_of_another_protocol_is_not_obeyed() -> None:
    """It may mean something else."""
    sealed = seal(MessageKind.ORDER, msgspec.to_builtins(Stop(run="r1", grace_s=0.0)), 9)
    with pytest.raises(MalformedMessageError, match="protocol 9"):
        decode_order(SIGNER, msgspec.json.encode(sealed))
