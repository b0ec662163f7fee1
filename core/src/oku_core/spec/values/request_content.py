"""Parses the headers and the body of a request, and finds headers that contradict it."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from oku_core.errors import format_value
from oku_core.json_reader import JsonError, decode_document
from oku_core.spec.values.file_reference import find_file_reference
from oku_core.spec.values.scalar import parse_scalar, parse_text, wrap_list
from oku_core.spec.values.template import (
    INDEX_PLACEHOLDER,
    NAMED_PLACEHOLDER,
    SECRET_PLACEHOLDER,
    check_secrets,
    measure_body,
    read_literally,
)

# RFC 9110: a name is a token (section 5.6.2); a value has no control characters but the tab (section 5.5).
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")

DEFAULT_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "oku/0.1",
}
"""The headers that all clients send, unless a request has its own."""
BODY_TYPE = "application/octet-stream"
"""The `Content-Type` of a body that has no other."""
_SINGLE = frozenset({"host", "content-length"})
_REFUSED = {
    "transfer-encoding": "bodies are sent whole, with their length; leave the header out",
    "expect": "bodies are sent at once; leave the header out",
    "upgrade": "connections speak one protocol from the beginning; leave the header out",
    "http2-settings": "connections speak one protocol from the beginning; leave the header out",
}
_CONNECTION_OPTIONS = frozenset({"close", "keep-alive"})
FRAMING = frozenset({"connection", "content-length", *_REFUSED})
"""The names of headers that determine where a request ends, or whether its connection is kept."""


class Header(str):
    """A header; as a string, it is the `Name: value` that the user wrote.

    Attributes:
        name: the text before the colon.
        value: the text after the colon, without surrounding whitespace; it may contain placeholders.
    """

    __slots__ = ("name", "value")
    name: str
    value: str

    def __new__(cls, text: str) -> Self:
        """Split the text at the colon, without checking it."""
        header = super().__new__(cls, text)
        header.name, _, value = text.partition(":")
        header.value = value.strip()
        return header

    def is_named(self, name: str) -> bool:
        """Whether the header has this name, which must be in lower case."""
        return self.name.lower() == name


CLOSE = Header("Connection: close")
"""Asks for a new connection for each request."""


def parse_headers(value: object) -> tuple[Header, ...]:
    """Parse one `Name: value`, a list of them, or a mapping of names to values."""
    if isinstance(value, Mapping):
        texts = [f"{parse_text(name)}: {parse_scalar(content)}" for name, content in value.items()]
    else:
        texts = [parse_text(item) for item in wrap_list(value)]
    return tuple(map(_parse_header, texts))


def find_framing_fault(headers: Sequence[Header], body: str | None) -> str | None:
    """Find how the headers of a spec contradict its body or each other; None if they do not.

    Args:
        headers: the headers of each request.
        body: the body of each request, which may contain `{i}`; None if there is no body.
    """
    counts = Counter(header.name.lower() for header in headers)
    for header in headers:
        name, value = header.name.lower(), header.value
        shown = format_value(f"{header.name}: {value}")
        if why := _REFUSED.get(name):
            return f"{shown}: {why}"
        if name in _SINGLE and counts[name] > 1:
            return f"{header.name}: is given twice"
        if name == "content-length" and (why := _find_length_fault(value, body)):
            return f"{shown}: {why}; leave the header out, Oku sends it"
        if name == "connection" and not set(_split_options(value)) <= _CONNECTION_OPTIONS:
            return f"{shown}: only {' and '.join(sorted(_CONNECTION_OPTIONS))} are allowed"
    return None


def asks_to_close(headers: Iterable[Header]) -> bool:
    """Whether the headers ask for a new connection for each request."""
    found = (header for header in headers if header.is_named("connection"))
    return any(CLOSE.value in _split_options(header.value) for header in found)


def _parse_header(text: str) -> Header:
    name, colon, value = text.partition(":")
    if not name or not colon:
        raise ValueError(f"{format_value(text)} is not of the form 'Name: value'")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{format_value(name)} is not a valid header name: use ASCII letters, digits and -")
    if not _VALUE.fullmatch(value):
        raise ValueError(f"{format_value(text)} has line breaks or control characters in its value")
    check_secrets(value)
    return Header(text)


def _find_length_fault(value: str, body: str | None) -> str | None:
    text = body or ""
    if INDEX_PLACEHOLDER in text:
        return f"the length of a body with {INDEX_PLACEHOLDER} in it varies"
    reference = find_file_reference(text)
    length = measure_body(read_literally(text)) if reference is None else reference.size
    if not re.fullmatch("[0-9]{1,18}", value) or int(value) != length:
        return f"the body has {length} bytes"
    return None


def _split_options(value: str) -> list[str]:
    return [option.strip().lower() for option in value.split(",")]


MOST_BODY_BYTES = 64 << 20
"""The largest body; a worker has it in memory once, or with a placeholder for each request in flight."""
_FORM_PAIR = r"[\w.~%+*\[\]-]++=[\w.~%+*\[\]@:/,-]*+"
_FORM = re.compile(f"{_FORM_PAIR}(?:&{_FORM_PAIR})*+", re.ASCII)
"""The characters of an encoded form, and those that people leave as they are in one."""
JSON_TYPE = "application/json"


def parse_body(value: object) -> str:
    """Parse a body: any text, with or without placeholders, or the file of the run that has it."""
    body = parse_text(value)
    if reference := find_file_reference(body):
        if reference.size > MOST_BODY_BYTES:
            raise ValueError(f"{reference.name} is larger than {MOST_BODY_BYTES >> 20} MiB")
        return body
    check_secrets(body)
    return body


def find_body_type(body: str, columns: Collection[str] = (), whole_row: str = "") -> str | None:
    """The `Content-Type` of a JSON object or array, or a form, once placeholders are replaced, or None.

    The type of a file, whose content is not here, follows from its name.

    Args:
        body: with its placeholders.
        columns: what placeholders may stand for in it.
        whole_row: the one of them that stands for a JSON object; empty if none does.
    """
    if reference := find_file_reference(body):
        return JSON_TYPE if reference.name.endswith(".json") else None
    indexed = SECRET_PLACEHOLDER.sub("0", body.replace(INDEX_PLACEHOLDER, "0"))
    text = read_literally(indexed)
    filled = NAMED_PLACEHOLDER.sub(
        lambda found: "{}" if found[1] == whole_row else "0" if found[1] in columns else found[0], indexed
    )
    if _is_json(text) or _is_json(read_literally(filled)):
        return JSON_TYPE
    if _FORM.fullmatch(text):
        return "application/x-www-form-urlencoded"
    return None


class FormPart(NamedTuple):
    """A field or a file of a form.

    Attributes:
        name: of the field.
        content: its value, or the content of the file.
        filename: None if it is no file.
        type: its content type; empty if none is sent.
    """

    name: str
    content: str | bytes
    filename: str | None = None
    type: str = ""


def write_form(parts: Iterable[FormPart], boundary: str) -> bytes:
    """The body of a form as `multipart/form-data` (RFC 7578)."""
    pieces: list[bytes] = []
    for part in parts:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quote_form_name(part.name)}"'
        if part.filename is not None:
            head += f'; filename="{_quote_form_name(part.filename)}"'
        if part.type:
            head += f"\r\nContent-Type: {part.type}"
        content = part.content if isinstance(part.content, bytes) else part.content.encode()
        pieces += (head.encode(), b"\r\n\r\n", content, b"\r\n")
    return b"".join((*pieces, f"--{boundary}--\r\n".encode()))


def _quote_form_name(text: str) -> str:
    """The name of a field or a file within the quotes of a part, as browsers write it (HTML, 4.10.21.8)."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        return isinstance(decode_document(text), dict | list)
    except JsonError:
        return False
