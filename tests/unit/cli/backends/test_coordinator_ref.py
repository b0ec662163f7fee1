import pytest

from oku_cli.backends.coordinator_ref import read_token
from oku_core.errors import UserError


@pytest.mark.parametrize("text", ["s3cret", " s3cret", "s3cret\n", "\ts3cret \r\n"])
def test_what_stands_around_a_token_is_none_of_it(text: str) -> None:
    """A file or a Secret often ends with a line break."""
    assert read_token(text) == "s3cret"


def test_a_token_may_have_every_character_that_a_header_bears() -> None:
    """These are the printable ASCII characters that `openssl rand -base64` and others produce."""
    everything = "".join(map(chr, range(33, 127)))
    assert read_token(everything) == everything


@pytest.mark.parametrize("text", ["", " ", "\r\n"])
def test_a_token_of_nothing_is_refused(text: str) -> None:
    """Nobody could tell whether that was intended."""
    with pytest.raises(UserError, match=r"^--token \(OKU_TOKEN\): is empty$"):
        read_token(text)


@pytest.mark.parametrize("text", ["two words", "a\nb", "a\x00b", "schlüssel", "a\x7f", "a\u00a0b"])
def test_a_token_that_no_header_can_bear_is_refused(text: str) -> None:
    """The error is one line that names the source of the token and does not show it."""
    with pytest.raises(UserError) as caught:
        read_token(text, "the Secret")
    assert str(caught.value) == "the Secret: has other than printable ASCII characters without spaces"
