"""The response body of the delay server: the bytes that a text from the user stands for.

| text | body |
| --- | --- |
| `@logo.png` | the content of the file `logo.png`, which is read once at the start |
| `512B`, `4kB`, `4KiB`, `1MB` | that many bytes: a number and a unit that ends in `B`, nothing else |
| anything else | that text in UTF-8, including `42`, `4k` and the empty text |
"""

import re
from pathlib import Path

from oku_core.spec.values.quantity import parse_size

DEFAULT_BODY = b"Hello, World!"
MAX_BODY_BYTES = 2**30
"""The longest body that is allowed, since the body is held in memory."""

_SIZE = re.compile(r"[0-9][0-9_]*(\.[0-9]+)?([kmg]i?)?b", re.IGNORECASE)
_FILLING = b"x"


def parse_body(text: str) -> bytes:
    """The body that `text` stands for, by the table above.

    Raises:
        ValueError: the file cannot be read, or the body is longer than 1 GiB.
    """
    if text.startswith("@"):
        return _read(Path(text[1:]))
    if not _SIZE.fullmatch(text):
        return text.encode()
    size = parse_size(text)
    _check_size(text, size)
    return _FILLING * size


def _read(path: Path) -> bytes:
    try:
        _check_size(str(path), path.stat().st_size)
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def _check_size(text: str, size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise ValueError(f"{text} is not at most 1GiB")
