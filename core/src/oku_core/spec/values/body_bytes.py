"""The bytes of a body as text, and back.

A body is text, in which placeholders stand. Bytes of a file that are not UTF-8 are lone surrogates in it
(PEP 383), so that any file can be sent; such text stays in memory and is never written down.
"""

_ERRORS = "surrogateescape"


def read_body(content: bytes) -> str:
    """The text of a body that consists of these bytes."""
    return content.decode(errors=_ERRORS)


def write_body(text: str) -> bytes:
    """The bytes of the text of a body, or of a part of it."""
    return text.encode(errors=_ERRORS)
