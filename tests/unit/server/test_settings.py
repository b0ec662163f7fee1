from pathlib import Path

import pytest

from oku_server.behaviour.fault import FaultRates
from oku_server.settings import DEFAULT_BODY, ServerSettings, parse_body_setting


def test_an_empty_body_cannot_be_truncated() -> None:
    """A fault that could never show is refused."""
    with pytest.raises(ValueError, match=r"^an empty body cannot be truncated$"):
        ServerSettings(body=b"", faults=FaultRates(truncate=0.1))


def test_a_server_behaves_well_and_keeps_to_this_machine_unless_told_otherwise() -> None:
    """The defaults: loopback, one process, no delay, no fault, counts in memory."""
    settings = ServerSettings()
    assert (settings.host, settings.port, settings.processes) == ("127.0.0.1", 8080, 1)
    assert (settings.delay, settings.delay.mean_s, settings.seed) == ("0s", 0, 0)
    assert (settings.body, settings.faults) == (DEFAULT_BODY, FaultRates())
    assert settings.counts_dir is None
    assert settings.ready_file is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("0B", 0), ("512B", 512), ("4kB", 4000), ("4KiB", 4096), ("1.5kib", 1536), ("1_0b", 10), ("1MB", 10**6)],
)
def test_a_number_with_a_unit_of_bytes_is_a_size(text: str, size: int) -> None:
    """A number with a unit that ends in B gives a body of that many bytes."""
    assert len(parse_body_setting(text)) == size


@pytest.mark.parametrize(
    "text", ["", "42", "4k", "4 KiB", "-1B", "B", "1e3B", "Grüße", "4KiB!", "Hello, World!"]
)
def test_anything_else_is_literal_text(text: str) -> None:
    """Text that is neither a file nor a size is the body itself, in UTF-8."""
    assert parse_body_setting(text) == text.encode()


def test_the_text_of_the_default_is_read_as_the_default() -> None:
    """The help shows the default as text, and that text gives the default body."""
    assert parse_body_setting(DEFAULT_BODY.decode()) == DEFAULT_BODY


def test_a_path_after_an_at_sign_gives_the_content_of_the_file(tmp_path: Path) -> None:
    """`@FILE` gives the bytes of a file, whatever they are."""
    path = tmp_path / "4KiB"
    path.write_bytes(b"\x00\xff\n")
    assert parse_body_setting(f"@{path}") == b"\x00\xff\n"


@pytest.mark.parametrize(("name", "reason"), [("none", "No such file"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, name: str, reason: str) -> None:
    """A missing file is the user's mistake, so the message names the path and the reason."""
    path = tmp_path / name
    with pytest.raises(ValueError, match=reason) as caught:
        parse_body_setting(f"@{path}")
    assert str(caught.value).startswith(f"{path} cannot be read: ")


def test_a_body_has_at_most_a_gibibyte() -> None:
    """A body that would fill the memory is refused before it is made."""
    with pytest.raises(ValueError, match=r"^1025MiB is not at most 1GiB$"):
        parse_body_setting("1025MiB")


def test_a_file_has_at_most_a_gibibyte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds for files too."""
    monkeypatch.setattr("oku_server.settings.MAX_BODY_BYTES", 3)
    path = tmp_path / "long"
    path.write_bytes(b"1234")
    with pytest.raises(ValueError, match="is not at most"):
        parse_body_setting(f"@{path}")
