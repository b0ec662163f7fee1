import secrets
import string

from oku_core.messaging.credentials import (
    TICKET_S,
    CredentialFault,
    build_ticket,
    find_weakness,
    judge_ticket,
)
from oku_core.messaging.signing import Signer


def test_a_secret_that_is_easy_to_guess_is_found_and_not_shown() -> None:
    """It has sixteen characters or more, and some are different."""
    weak = {
        b"": "has 0 of at least 16 characters",
        b"x": "has 1 of at least 16 characters",
        b"0123456789abcde": "has 15 of at least 16 characters",
        b"x" * 1000: "has 1 of at least 5 different characters",
        b"ab" * 8: "has 2 of at least 5 different characters",
    }
    assert {secret: find_weakness(secret, "characters") for secret in weak} == weak
    assert find_weakness(b"0123456789abcdef", "characters") == ""
    # Random secrets are taken. As the chart, the documents and password managers make them.
    for _ in range(200):
        letters = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(40))
        for secret in (letters, secrets.token_hex(24), secrets.token_hex(16), secrets.token_urlsafe(24)):
            assert find_weakness(secret.encode(), "bytes") == ""


SIGNER = Signer(b"a key for tests")
DIGEST, OTHER = "a" * 64, "b" * 64


def test_a_ticket_is_for_one_file_and_for_a_time() -> None:
    """It holds until it expires, for its file alone, and for whoever has the same key."""
    ticket = build_ticket(SIGNER, DIGEST, 1000.0)
    assert judge_ticket(SIGNER, DIGEST, ticket, 1000.0) is None
    assert judge_ticket(SIGNER, DIGEST, ticket, 1000.0 + TICKET_S) is None
    assert judge_ticket(SIGNER, DIGEST, ticket, 1001.0 + TICKET_S) is CredentialFault.EXPIRED
    assert judge_ticket(SIGNER, OTHER, ticket, 1000.0) is CredentialFault.WRONG
    assert judge_ticket(Signer(b"another key"), DIGEST, ticket, 1000.0) is CredentialFault.WRONG
    # A ticket whose time was changed is none. The time is signed, too.
    expires, signature = build_ticket(SIGNER, DIGEST, 1000.0).split(".")
    changed = f"{int(expires) + 1}.{signature}"
    assert judge_ticket(SIGNER, DIGEST, changed, 1000.0) is CredentialFault.WRONG
    # What was not signed is no ticket. Whatever it looks like; one that was forged has not expired.
    forged = {
        "": CredentialFault.MISSING,
        ".": CredentialFault.MALFORMED,
        "9999999999": CredentialFault.MALFORMED,
        "x.y": CredentialFault.MALFORMED,
        "1.2.3": CredentialFault.MALFORMED,
        "é.ü": CredentialFault.MALFORMED,
        f"9999999999.{'0' * 64}": CredentialFault.WRONG,
        f"1.{'0' * 64}": CredentialFault.WRONG,
    }
    assert {ticket: judge_ticket(SIGNER, DIGEST, ticket, 1000.0) for ticket in forged} == forged
