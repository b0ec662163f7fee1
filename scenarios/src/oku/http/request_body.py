"""The body of a request: JSON, a form, files, or bytes as they are."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from mimetypes import guess_type
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from oku_core.spec.values.request_content import BODY_TYPE, FormPart, write_form

Fields = Mapping[str, object] | Sequence[tuple[str, object]]
"""Names and values of a query or of a form."""
Upload = Any
"""What is uploaded: bytes, the path of a file beside the scenario, or a file that is open; or a tuple of the
name that is said of the file, one of these, and a content type, which may be left out. A mapping to different
ones of these has no narrower type."""
Uploads = Mapping[str, Upload] | Sequence[tuple[str, Upload]]
"""What is uploaded, under the names of form fields."""
Data = bytes | str | Fields
"""A body as it is, or the fields of a form."""


class Body(NamedTuple):
    """A body.

    Attributes:
        content: its bytes.
        type: its content type.
    """

    content: bytes
    type: str


_TEXTS = str | bytes | bytearray
_CONTENTS: dict[str, bytes] = {}
"""The files that were uploaded, by their paths: each is read once."""
_MOST_KEPT_BYTES = 64 << 20


def encode_json(value: object) -> Body:
    """A value as JSON; `TypeError` if it cannot be."""
    return Body(msgspec.json.encode(value), "application/json")


def encode_data(data: Data) -> Body:
    """Bytes and text as they are, fields as a form."""
    if isinstance(data, bytes | bytearray):
        return Body(bytes(data), BODY_TYPE)
    if isinstance(data, str):
        return Body(data.encode(), "text/plain; charset=utf-8")
    return Body(encode_fields(data).encode(), "application/x-www-form-urlencoded")


def encode_fields(fields: Fields) -> str:
    """Names and values as a query has them."""
    return urlencode(list(_iter_values(fields)))


def encode_files(files: Uploads, data: Fields = ()) -> Body:
    """Files, and fields of a form before them, as `multipart/form-data` (RFC 7578).

    Raises:
        OSError: a file cannot be read.
    """
    parts = [FormPart(name, value) for name, value in _iter_values(data)]
    for name, upload in _list_pairs(files):
        shown, content, kind = _read(upload)
        parts.append(FormPart(name, content, shown, kind))
    boundary = secrets.token_hex(16)
    return Body(write_form(parts, boundary), f"multipart/form-data; boundary={boundary}")


def _list_pairs(fields: Mapping[str, object] | Sequence[tuple[str, object]]) -> Iterable[tuple[str, object]]:
    return fields.items() if isinstance(fields, Mapping) else fields


def _iter_values(fields: Fields) -> Iterator[tuple[str, str | bytes]]:
    """Names and values as they are sent: one pair for each item of a list, a set and so on, none for None."""
    if isinstance(fields, _TEXTS):
        raise TypeError("names and values are wanted, as in {'name': 'value'}, not text")
    for name, value in _list_pairs(fields):
        for each in value if isinstance(value, Iterable) and not isinstance(value, _TEXTS) else (value,):
            if each is not None:
                yield name, bytes(each) if isinstance(each, bytes | bytearray) else str(each)


def _read(upload: object) -> tuple[str, bytes, str]:
    """The name, the content and the content type of what is uploaded."""
    shown, content, kind = None, upload, None
    if isinstance(upload, tuple):
        shown, content, *rest = upload
        kind = rest[0] if rest else None
    if isinstance(content, bytes | bytearray):
        data = bytes(content)
    elif isinstance(content, str | Path):
        shown, data = shown or Path(content).name, _read_file(str(content))
    elif callable(read := getattr(content, "read", None)):
        shown, data = shown or Path(str(getattr(content, "name", "file"))).name, read()
        if isinstance(data, str):
            data = data.encode()
    else:
        raise TypeError(f"{type(content).__name__} cannot be uploaded: give bytes, a path or an open file")
    shown = shown or "file"
    return shown, data, kind or guess_type(shown)[0] or BODY_TYPE


def _read_file(path: str) -> bytes:
    content = _CONTENTS.get(path)
    if content is None:
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} is not beside the scenario: give --include {path}") from None
        if sum(map(len, _CONTENTS.values())) + len(content) <= _MOST_KEPT_BYTES:
            _CONTENTS[path] = content
    return content
