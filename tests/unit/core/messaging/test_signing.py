import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.messaging.rejection import ForgedMessageError, Rejection
from oku_core.messaging.signing import PROTOCOL, MessageKind, SealedMessage, Signer

SIGNER = Signer(b"a key of this test")
BODY = b'{"lease": "r1.1.aa", "run": "r1"}'


@given(st.text(), st.sampled_from(MessageKind), st.integers(0, 2**40))
def test_a_sealed_message_passes_unchanged(text: str, kind: MessageKind, protocol: int) -> None:
    """This holds for any body, any kind and any version of the protocol."""
    sealed = SIGNER.seal(kind, text.encode(), protocol)
    SIGNER.check(kind, sealed)
    assert (sealed.body, sealed.protocol) == (text, protocol)


@pytest.mark.parametrize("sealed_as", MessageKind)
@pytest.mark.parametrize("taken_as", MessageKind)
def test_a_message_of_one_kind_never_passes_for_another(
    sealed_as: MessageKind, taken_as: MessageKind
) -> None:
    """Otherwise anyone who has seen a lease could replay it as a report."""
    sealed = SIGNER.seal(sealed_as, BODY)
    if sealed_as == taken_as:
        SIGNER.check(taken_as, sealed)
        return
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


def test_a_seal_with_another_key_is_refused() -> None:
    """Coordinator and workers share one key, and the broker has none."""
    with pytest.raises(ForgedMessageError):
        SIGNER.check(MessageKind.LEASE, Signer(b"another key").seal(MessageKind.LEASE, BODY))


def test_the_signature_is_that_of_the_standard() -> None:
    """It is HMAC-SHA256 over kind, version and body, so other implementations can check it."""
    sealed = Signer(b"key").seal(MessageKind.LEASE, b"{}")
    # printf 'oku lease 11\n{}' | openssl dgst -sha256 -hmac key
    assert sealed.signature == "235739e98e8e297d5c02bf01e169b3c70f8c01159317e79f114a32b6327b27ef"
