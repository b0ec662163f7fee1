import pytest

from oku_cli.backends.coordinator_ref import read_token
from oku_core.errors import UserError


def test_a_token_is_printable_ascii() -> None:
    """These are the characters that a header bears; blanks around it, as files and Secrets have, are
    removed.
    """
    for text in ["s3cret", " s3cret", "s3cret\n", "\ts3cret \r\n"]:
        assert read_token(text) == "s3cret"
    everything = "".join(map(chr, range(33, 127)))
    assert read_token(everything) == everything


def test_any_other_token_is_refused() -> None:
    """The error is one line that names the source of the token and does not show it."""
    for text in ["", " ", "\r\n"]:
        with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): is empty$"):
            read_token(text)
    for text in ["two words", "a\nb", "a\x00b", "schlüssel", "a\x7f", "a\u00a0b"]:
        with pytest.raises(UserError) as caught:
            read_token(text, "the Secret")
        assert str(caught.value) == "the Secret: has other than printable ASCII characters without spaces"
