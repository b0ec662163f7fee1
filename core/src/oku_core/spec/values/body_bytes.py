"""The bytes of a body as text, and back.

A body is text, in which placeholders stand. That of a file is one character for each byte, whatever its
encoding: any file can be sent, and takes no more memory than it has bytes. In other text one wide character
makes all of them wide. Text of a file stays in memory and is never written down.
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
    """How many bytes that are."""
    return len(text) if isinstance(text, FileText) else len(write_body(text))
