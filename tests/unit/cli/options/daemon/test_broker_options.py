from pathlib import Path

import pytest

from oku_cli.options.daemon.broker_options import VARIABLE, read_message_key
from oku_core.errors import UserError

KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key but that of the test."""
    monkeypatch.delenv(VARIABLE, raising=False)


def test_the_key_is_in_the_variable_or_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line break that most files end with is not part of the key."""
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    assert read_message_key(file) == KEY.encode()
    monkeypatch.setenv(VARIABLE, f" {KEY} ")
    assert read_message_key(None) == KEY.encode()


@pytest.mark.parametrize(
    ("text", "weakness"),
    [
        ("", "has 0 of at least 16 bytes"),
        (" \n", "has 0 of at least 16 bytes"),
        ("0123456789abcde", "has 15 of at least 16 bytes"),
        ("abcd" * 8, "has 4 of at least 5 different bytes"),
    ],
)
def test_a_key_that_is_easy_to_guess_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, weakness: str
) -> None:
    """A key has at least sixteen bytes, which are not all the same."""
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UserError, match=f"^OKU_MESSAGE_KEY: {weakness}; make one"):
        read_message_key(None)
    monkeypatch.delenv(VARIABLE)
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(UserError, match=f"key: {weakness}; make one") as caught:
        read_message_key(file)
    assert not text.strip() or text not in str(caught.value)


def test_a_key_that_cannot_be_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the coordinator nor a worker starts."""
    with pytest.raises(UserError) as caught:
        read_message_key(None)
    assert str(caught.value) == (
        "--message-key-file (OKU_MESSAGE_KEY): is missing; make one for coordinator and workers: "
        "export OKU_MESSAGE_KEY=$(openssl rand -hex 32)"
    )
    # A file that cannot be read is named. The error has the operating system's reason.
    with pytest.raises(UserError, match=r"^--message-key-file: .*/none: No such file or directory$"):
        read_message_key(tmp_path / "none")
    with pytest.raises(UserError, match=r"Is a directory$"):
        read_message_key(tmp_path)
    # File and variable do not go together. It would not be clear which one applies.
    monkeypatch.setenv(VARIABLE, KEY)
    with pytest.raises(UserError, match=r"^--message-key-file: cannot be combined with OKU_MESSAGE_KEY$"):
        read_message_key(tmp_path / "key")
