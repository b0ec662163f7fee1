import email.policy
import io
from email import message_from_bytes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oku.http.request_body import encode_data, encode_fields, encode_files, encode_json

if TYPE_CHECKING:
    from oku.http.request_body import Uploads


def take_apart(content: bytes, kind: str) -> list[tuple[str | None, str | None, str, bytes]]:
    """The parts of a form, as another implementation reads it."""
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    message = message_from_bytes(head + content, policy=email.policy.HTTP)
    assert message.is_multipart()
    assert not message.defects
    parts: list[Any] = [*message.iter_parts()]
    return [
        (
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in parts
    ]


def test_a_form_with_files(tmp_path: Path) -> None:
    """Fields come first, then files with their names and types."""
    path = tmp_path / "a.html"
    path.write_bytes(b"<p>\r\n--</p>")
    fields = {"field": ["1", "ü", b"\xff"], "none": None}
    files: Uploads = {
        "one": b"\x00\xff", "two": path, "three": ("b.txt", io.BytesIO(b"open")), "four": ("c", b"", "a/b"),
    }  # fmt: skip
    body = encode_files(files, fields)
    assert take_apart(body.content, body.type) == [
        ("field", None, "text/plain", b"1"),
        ("field", None, "text/plain", "ü".encode()),
        ("field", None, "text/plain", b"\xff"),
        ("one", "file", "application/octet-stream", b"\x00\xff"),
        ("two", "a.html", "text/html", b"<p>\r\n--</p>"),
        ("three", "b.txt", "text/plain", b"open"),
        ("four", "c", "a/b", b""),
    ]


def test_names_cannot_break_out_of_their_quotes() -> None:
    """As browsers write them."""
    body = encode_files({'a"\r\nb': ('c"d', b"")})
    assert b'name="a%22%0D%0Ab"; filename="c%22d"\r\n' in body.content


def test_a_form_without_anything() -> None:
    """It has an end all the same."""
    body = encode_files({})
    assert body.content.startswith(b"--")
    assert body.content.endswith(b"--\r\n")


def test_what_cannot_be_uploaded(tmp_path: Path) -> None:
    """A number is not a file, and a file must be there."""
    with pytest.raises(TypeError, match="int cannot be uploaded: give bytes, a path or an open file"):
        encode_files({"a": 3})
    with pytest.raises(FileNotFoundError, match="none is not beside the scenario: give --include "):
        encode_files({"a": str(tmp_path / "none")})


def test_fields_may_stand_for_several() -> None:
    """Whatever has items has one name for all, None nothing; text has none."""
    assert encode_fields({"a": [1, 2], "b": "x y&", "c": None, "d": [None]}) == "a=1&a=2&b=x+y%26"
    several = {"a": {1}, "b": range(2), "c": (each for each in "xy"), "d": {"k": 1}.keys(), "e": b"\xff"}
    assert encode_fields(several) == "a=1&b=0&b=1&c=x&c=y&d=k&e=%FF"
    with pytest.raises(TypeError, match="not text"):
        encode_fields("a=b")  # type: ignore[arg-type]
    assert encode_data({"a": 1}).type == "application/x-www-form-urlencoded"


def test_json_is_compact() -> None:
    """It is what msgspec writes."""
    assert encode_json({"a": [1, None, "ü"]}).content == '{"a":[1,null,"ü"]}'.encode()
    with pytest.raises(TypeError):
        encode_json(object())
