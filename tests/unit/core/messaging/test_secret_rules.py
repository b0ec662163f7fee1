import secrets
import string

from oku_core.messaging.secret_rules import find_weakness


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


def test_random_secrets_are_taken() -> None:
    """As the chart, the documents and password managers make them."""
    for _ in range(200):
        letters = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(40))
        for secret in (letters, secrets.token_hex(24), secrets.token_hex(16), secrets.token_urlsafe(24)):
            assert find_weakness(secret.encode(), "bytes") == ""
