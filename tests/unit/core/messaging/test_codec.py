import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.outcomes import make_counts

from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, Part
from oku_core.messaging.codec import (
    OtherProtocolError,
    UnreadableLeasesError,
    decode_checkpoints,
    decode_leases,
    decode_order,
    decode_progress,
    seal_checkpoints,
    seal_leases,
    seal_order,
    seal_progress,
)
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Control, Intervals, Order, Stop
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress
from oku_core.messaging.signing import (
    PROTOCOL,
    ForgedMessageError,
    MalformedMessageError,
    MessageKind,
    RejectedMessageError,
    Rejection,
    Signer,
)
from oku_core.spec.spec import Spec, encode_part
from oku_core.spec.values.url import Url

SIGNER = Signer(b"a key of this test")
LEASES = LeaseBatch(
    run="r1",
    incarnation="b1",
    leases=[Lease(id="r1.7.aa", run="r1", ranges=[(5, 8), (10**15, 10**15 + 2)], limit=3)],
    start_by=1.7e9,
    spec=Spec(urls=(Url("http://h/{i}"),)),
)
CHECKPOINTS = CheckpointBatch(
    worker="w1",
    incarnation="b1",
    run="r1",
    checkpoints=[
        Checkpoint(
            lease="r1.7.aa",
            sequence=2,
            done=3,
            end=5,
            parts=[Part(outcomes=make_counts(timeout=3), per_second={1_700_000_000: make_counts(timeout=3)})],
        )
    ],
)
STOP = Stop(run="r1", up_to=7, grace_s=2.5)
PROGRESS = Progress(
    worker="w1",
    incarnation="b1",
    at=1.7e9,
    sequence=3,
    leases={"l1": LeaseProgress(3, 5, make_counts(1))},
    specs=["r1"],
    runs={"r1": RunProgress(outcomes=make_counts(1), in_flight=2)},
)
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


def test_a_message_is_read_as_it_was_sealed() -> None:
    """The worker gets them exactly as the coordinator has cut them, with the spec or without it."""
    for batch in [LEASES, msgspec.structs.replace(LEASES, spec=None)]:
        assert decode_leases(SIGNER, seal_leases(SIGNER, batch)) == batch
    # Checkpoints are read as they were sealed.
    assert decode_checkpoints(SIGNER, as_task(seal_checkpoints(SIGNER, CHECKPOINTS))) == CHECKPOINTS
    # Progress is read as it was sealed. It is read from a Celery event.
    assert decode_progress(SIGNER, as_event(seal_progress(SIGNER, PROGRESS))) == PROGRESS
    cases: list[Order] = [
        STOP,
        Intervals(number=3, heartbeat_s=2.0, checkpoint_s=5.0),
        Control(incarnation="b1", confirmed={"l1": 3}, limits={"l1": 40}, ends={"l2": 0}),
    ]
    for order in cases:
        # Orders are read as they were sealed. Each order keeps its type.
        assert decode_order(SIGNER, msgspec.json.encode(seal_order(SIGNER, order))) == order


@pytest.mark.parametrize("signer", [Signer(b""), Signer(b"the key of somebody else")])
def test_a_message_with_another_key_is_forged(signer: Signer) -> None:
    """This holds for every kind of message."""
    for decode in (
        lambda: decode_leases(SIGNER, seal_leases(signer, LEASES)),
        lambda: decode_checkpoints(SIGNER, as_task(seal_checkpoints(signer, CHECKPOINTS))),
        lambda: decode_progress(SIGNER, as_event(seal_progress(signer, PROGRESS))),
        lambda: decode_order(SIGNER, msgspec.json.encode(seal_order(signer, STOP))),
    ):
        with pytest.raises(ForgedMessageError):
            decode()


def test_a_message_without_a_signature_is_malformed() -> None:
    """Messages from before signatures existed look like this."""
    with pytest.raises(MalformedMessageError):
        decode_checkpoints(SIGNER, as_task(msgspec.to_builtins(CHECKPOINTS, str_keys=True)))
    with pytest.raises(MalformedMessageError):
        decode_leases(SIGNER, msgspec.to_builtins(LEASES, enc_hook=encode_part))


@given(JSON_VALUES)
def test_any_json_is_rejected_unless_it_is_ours(document: object) -> None:
    """Whatever a message contains, signed or not, reading it raises only `RejectedMessageError`."""
    text = json.dumps(document)
    with pytest.raises(RejectedMessageError):
        decode_leases(SIGNER, document)
    for body in (text, json.dumps([[document], {}, {}]), json.dumps({"progress": document})):
        for decode in (decode_checkpoints, decode_progress, decode_order):
            with pytest.raises(RejectedMessageError):
                decode(SIGNER, body)
    sealed = {kind: msgspec.to_builtins(SIGNER.seal(kind, text.encode())) for kind in MessageKind}
    for read in (
        lambda: decode_leases(SIGNER, sealed[MessageKind.LEASE]),
        lambda: decode_checkpoints(SIGNER, as_task(sealed[MessageKind.CHECKPOINT])),
        lambda: decode_progress(SIGNER, as_event(sealed[MessageKind.PROGRESS])),
        lambda: decode_order(SIGNER, msgspec.json.encode(sealed[MessageKind.ORDER])),
    ):
        with pytest.raises(RejectedMessageError):
            read()


def test_checkpoints_with_a_wrong_part_or_figure_are_malformed() -> None:
    """A faulty worker does not stop the coordinator."""
    cases: list[dict[str, object]] = [
        {"worker": None},
        {"checkpoints": {}},
        {"checkpoints": [{"lease": "l1", "sequence": 1, "done": True, "end": 3}]},
        {"checkpoints": [{"lease": "l1", "sequence": 1, "done": 3.5, "end": 4}]},
        {"checkpoints": [{"lease": "l1", "sequence": 1, "done": 0, "end": 0, "parts": [{"outcomes": None}]}]},
    ]
    for change in cases:
        document = msgspec.to_builtins(CHECKPOINTS, str_keys=True) | change
        with pytest.raises(MalformedMessageError, match=r"^[^\n]+$"):
            decode_checkpoints(SIGNER, as_task(seal(MessageKind.CHECKPOINT, document)))
    other_cases: list[tuple[dict[str, object], str]] = [
        ({"taken": 10**400}, "taken is 1"),
        ({"taken": -1}, "taken is -1"),
        ({"rate_rps": 1e308}, "rate_rps is 1e"),
        ({"rate_rps": -0.5}, "rate_rps is -0.5"),
    ]
    for change, fault in other_cases:
        # Checkpoints with an impossible figure are malformed.
        document = msgspec.to_builtins(CHECKPOINTS, str_keys=True) | change
        with pytest.raises(MalformedMessageError, match=f"^{fault}"):
            decode_checkpoints(SIGNER, as_task(seal(MessageKind.CHECKPOINT, document)))


def test_unknown_fields_of_a_message_are_ignored() -> None:
    """A newer worker may add fields."""
    document = msgspec.to_builtins(CHECKPOINTS, str_keys=True) | {"colour": "red"}
    assert decode_checkpoints(SIGNER, as_task(seal(MessageKind.CHECKPOINT, document))) == CHECKPOINTS
    # Progress that cannot be true is malformed. This holds even if it is signed.
    sealed = seal(MessageKind.PROGRESS, msgspec.to_builtins(PROGRESS) | {"runs": {"r1": {"outcomes": [1]}}})
    with pytest.raises(MalformedMessageError, match=r"^the outcomes are not a count for each$"):
        decode_progress(SIGNER, as_event(sealed))


# Other versions

NEWER: dict[str, Any] = {
    "run": "r1",
    "incarnation": "b1",
    "leases": [{"id": "r1.7.aa", "waves": 3}, {"id": "r1.8.bb"}],
    "plan": {"waves": 3},
}
"""Leases of a future protocol: the fields that every version has, and some that this version lacks."""


@pytest.mark.parametrize(
    "change",
    [{"start_by": "x"}, {"spec": 1}, {"spec": {"colour": "red"}}, {"spec": {"engine": "steam"}}],
)
def test_leases_with_an_unknown_part_are_refused(change: dict[str, object]) -> None:
    """If an unknown key of a spec were ignored, other requests would be sent than the user asked for."""
    document = msgspec.to_builtins(LEASES, enc_hook=encode_part) | change
    with pytest.raises(UnreadableLeasesError, match=r"^the lease cannot be read: [^\n]+$") as caught:
        decode_leases(SIGNER, seal(MessageKind.LEASE, document))
    assert [lease.id for lease in caught.value.head.leases] == ["r1.7.aa"]


@pytest.mark.parametrize(
    "read",
    [
        lambda: decode_progress(
            SIGNER, as_event(seal(MessageKind.PROGRESS, {"worker": "w9", "incarnation": "b9"}, PROTOCOL + 1))
        ),
        lambda: decode_checkpoints(
            SIGNER,
            as_task(
                seal(MessageKind.CHECKPOINT, msgspec.to_builtins(CHECKPOINTS, str_keys=True), PROTOCOL + 1)
            ),
        ),
    ],
)
def test_a_worker_of_another_protocol_is_named(read: Callable[[], object]) -> None:
    """People need to know which worker it is."""
    expected = rf"^worker w[19] speaks protocol {PROTOCOL + 1}, this coordinator {PROTOCOL}$"
    with pytest.raises(OtherProtocolError, match=expected):
        read()


def test_leases_and_orders_of_another_protocol_are_refused() -> None:
    """The error names both versions and the ids of the leases."""
    with pytest.raises(UnreadableLeasesError) as caught:
        decode_leases(SIGNER, seal(MessageKind.LEASE, NEWER, PROTOCOL + 1))
    assert caught.value.rejection == Rejection.OTHER_PROTOCOL
    head = caught.value.head
    assert (head.run, head.incarnation, [lease.id for lease in head.leases]) == (
        "r1", "b1", ["r1.7.aa", "r1.8.bb"],
    )  # fmt: skip
    assert f"the coordinator speaks protocol {PROTOCOL + 1}, this worker {PROTOCOL}" in str(caught.value)
    # An order of another protocol is not obeyed. It may mean something else.
    sealed = seal(MessageKind.ORDER, msgspec.to_builtins(STOP), PROTOCOL + 1)
    with pytest.raises(MalformedMessageError, match=f"protocol {PROTOCOL + 1}"):
        decode_order(SIGNER, msgspec.json.encode(sealed))
