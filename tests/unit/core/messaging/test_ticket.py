import pytest

from oku_core.messaging.signing import Signer
from oku_core.messaging.ticket import TICKET_S, build_ticket, is_valid_ticket

SIGNER = Signer(b"a key for tests")
DIGEST, OTHER = "a" * 64, "b" * 64


def test_a_ticket_is_for_one_file_and_for_a_time() -> None:
    """It holds until it expires, for its file alone, and for whoever has the same key."""
    ticket = build_ticket(SIGNER, DIGEST, 1000.0)
    assert is_valid_ticket(SIGNER, DIGEST, ticket, 1000.0)
    assert is_valid_ticket(SIGNER, DIGEST, ticket, 1000.0 + TICKET_S)
    assert not is_valid_ticket(SIGNER, DIGEST, ticket, 1001.0 + TICKET_S)
    assert not is_valid_ticket(SIGNER, OTHER, ticket, 1000.0)
    assert not is_valid_ticket(Signer(b"another key"), DIGEST, ticket, 1000.0)


@pytest.mark.parametrize("ticket", ["", ".", "9999999999", f"9999999999.{'0' * 64}", "x.y", "1.2.3", "é.ü"])
def test_what_was_not_signed_is_no_ticket(ticket: str) -> None:
    """Whatever it looks like."""
    assert not is_valid_ticket(SIGNER, DIGEST, ticket, 1000.0)


def test_a_ticket_whose_time_was_changed_is_none() -> None:
    """The time is signed, too."""
    expires, signature = build_ticket(SIGNER, DIGEST, 1000.0).split(".")
    assert not is_valid_ticket(SIGNER, DIGEST, f"{int(expires) + 1}.{signature}", 1000.0)
