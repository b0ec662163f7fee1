import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.messaging.signing import (
    PROTOCOL,
    ForgedMessageError,
    MalformedMessageError,
    MessageKind,
    Rejection,
    RejectionLog,
    SealedMessage,
    Signer,
)


class Clock:
    """A monotonic clock that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        """Stand in for `time.monotonic`."""
        return self.now


def test_a_flood_is_logged_as_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The first message is logged at once, and each line tells how many came since the last one."""
    clock = Clock()
    log = RejectionLog(logging.getLogger("oku"), clock=clock)
    for _ in range(100_000):
        log.record(ForgedMessageError("a report is not signed"))
    clock.now += 60
    log.record(MalformedMessageError("Invalid JSON"))
    assert [record.getMessage() for record in caplog.records] == [
        "messages from the broker were dropped: 1, the last because a report is not signed",
        "messages from the broker were dropped: 100000, the last because Invalid JSON",
    ]


def test_each_message_is_counted_by_its_reason() -> None:
    """The counts feed a metric."""
    counted: list[Rejection] = []
    log = RejectionLog(logging.getLogger("oku"), counted.append)
    log.record(ForgedMessageError("x"))
    log.record(MalformedMessageError("y"))
    assert counted == [Rejection.FORGED, Rejection.MALFORMED]
    # Rejected messages are described for a minute.
    clock = Clock()
    log = RejectionLog(logging.getLogger("oku"), clock=clock)
    assert log.describe() == ""
    log.record(ForgedMessageError("x"))
    log.record(ForgedMessageError("y"))
    clock.now += 60
    assert log.describe() == "messages from the broker were dropped: 2, the last because y"
    clock.now += 1
    assert log.describe() == ""


def test_what_was_dropped_and_where_it_came_from_are_in_the_line(caplog: pytest.LogCaptureFixture) -> None:
    """Messages of the broker have no address; datagrams have."""
    log = RejectionLog(logging.getLogger("oku"), what="clock requests")
    log.record(ForgedMessageError("a question is not signed"), "10.1.2.3")
    line = "clock requests were dropped: 1, the last from 10.1.2.3 because a question is not signed"
    assert caplog.messages == [line]
    assert log.describe() == line


SIGNER = Signer(b"a key of this test")
BODY = b'{"lease": "r1.1.aa", "run": "r1"}'


@given(st.text(), st.sampled_from(MessageKind), st.integers(0, 2**40))
def test_a_sealed_message_passes_unchanged(text: str, kind: MessageKind, protocol: int) -> None:
    """This holds for any body, any kind and any version of the protocol."""
    sealed = SIGNER.seal(kind, text.encode(), protocol)
    SIGNER.check(kind, sealed)
    assert (sealed.body, sealed.protocol) == (text, protocol)


def test_a_message_of_one_kind_never_passes_for_another() -> None:
    """Otherwise anyone who has seen a lease could replay it as a report."""
    for taken_as in MessageKind:
        for sealed_as in MessageKind:
            sealed = SIGNER.seal(sealed_as, BODY)
            if sealed_as == taken_as:
                SIGNER.check(taken_as, sealed)
                continue
            with pytest.raises(ForgedMessageError):
                SIGNER.check(taken_as, sealed)


@pytest.mark.parametrize(
    "change",
    [
        {"body": BODY.decode().replace("r1.1", "r1.2")},
        {"body": ""},
        {"protocol": PROTOCOL + 1},
        {"signature": ""},
        {"signature": "0" * 64},
        {"signature": "é\ud800"},
        {"body": "\ud800"},
    ],
)
def test_a_message_that_was_changed_on_the_way_is_forged(change: dict[str, object]) -> None:
    """This holds for body, version and signature, and no change raises any other exception."""
    sealed = SIGNER.seal(MessageKind.CHECKPOINT, BODY)
    fields = {name: getattr(sealed, name) for name in sealed.__struct_fields__}
    with pytest.raises(
        ForgedMessageError, match=r"^a message of kind checkpoint is not signed with the key of this process$"
    ) as caught:
        SIGNER.check(MessageKind.CHECKPOINT, SealedMessage(**(fields | change)))
    assert caught.value.rejection == Rejection.FORGED


def test_the_signature_is_that_of_the_standard() -> None:
    """It is HMAC-SHA256 over kind, version and body, so other implementations can check it."""
    sealed = Signer(b"key").seal(MessageKind.LEASE, b"{}")
    # printf 'oku lease 13\n{}' | openssl dgst -sha256 -hmac key
    assert sealed.signature == "6f8ebab393b986258bc09dbec7f851fb3c613781e04a1540f95fd55541578aaf"
    # A seal with another key is refused. Coordinator and workers share one key, and the broker has none.
    with pytest.raises(ForgedMessageError):
        SIGNER.check(MessageKind.LEASE, Signer(b"another key").seal(MessageKind.LEASE, BODY))
