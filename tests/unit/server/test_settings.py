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


def test_what_the_text_of_a_body_means() -> None:
    """A number with a unit that ends in B gives a body of that many bytes."""
    for text, size in [
        ("0B", 0),
        ("512B", 512),
        ("4kB", 4000),
        ("4KiB", 4096),
        ("1.5kib", 1536),
        ("1_0b", 10),
        ("1MB", 10**6),
    ]:
        assert len(parse_body_setting(text)) == size
    for text in ["", "42", "4k", "4 KiB", "-1B", "B", "1e3B", "Grüße", "4KiB!", "Hello, World!"]:
        # Anything else is literal text. Text that is neither a file nor a size is the body itself, in UTF-8.
        assert parse_body_setting(text) == text.encode()
    # The text of the default is read as the default.
    assert parse_body_setting(DEFAULT_BODY.decode()) == DEFAULT_BODY
    # A body has at most a gibibyte. A body that would fill the memory is refused before it is made.
    with pytest.raises(ValueError, match=r"^1025MiB is not at most 1GiB$"):
        parse_body_setting("1025MiB")


def test_what_a_file_of_a_body_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`@FILE` gives the bytes of a file, whatever they are."""
    path = tmp_path / "4KiB"
    path.write_bytes(b"\x00\xff\n")
    assert parse_body_setting(f"@{path}") == b"\x00\xff\n"
    for name, reason in [("none", "No such file"), (".", "Is a directory")]:
        # A file that cannot be read is named with the reason.
        path = tmp_path / name
        with pytest.raises(ValueError, match=reason) as caught:
            parse_body_setting(f"@{path}")
        assert str(caught.value).startswith(f"{path} cannot be read: ")
    # A file has at most a gibibyte. The limit holds for files too.
    monkeypatch.setattr("oku_server.settings.MAX_BODY_BYTES", 3)
    path = tmp_path / "long"
    path.write_bytes(b"1234")
    with pytest.raises(ValueError, match="is not at most"):
        parse_body_setting(f"@{path}")
