"""The bytes of a body as text, and back.

A body is text with placeholders. The text of a file has one character for each byte, whatever the encoding of
the file: any file can be sent, and its text takes as much memory as the file has bytes. In ordinary text, one
wide character makes all of them wide. The text of a file stays in memory and is never stored.
"""

_BYTES = "latin-1"
_ERRORS = "surrogateescape"


class FileText(str):
    """The bytes of a file, each as the character of that number."""

    __slots__ = ()


def read_body(content: bytes) -> FileText:
    """The text of a body that consists of these bytes."""
    return FileText(content, _BYTES)


def write_body(text: str) -> bytes:
    """The bytes of the text of a body, or of a part of it."""
    return text.encode(_BYTES) if isinstance(text, FileText) else text.encode(errors=_ERRORS)


def measure_body(text: str) -> int:
    """How many bytes `write_body` gives."""
    return len(text) if isinstance(text, FileText) else len(write_body(text))
