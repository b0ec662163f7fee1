"""The key of a submission: the same key submits the same run once, however often it is sent.

It is in the header `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header), in quotes or without them,
and in `--once KEY` of `oku run`.
"""

from oku_core.errors import format_value

IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"
LONGEST_KEY = 255
_EXCLUDED = frozenset('"\\,')
"""Would have to be escaped in the header, or divides two keys."""


def check_idempotency_key(key: str) -> str:
    """Return a key that can be used; `ValueError` says what a key may be."""
    if not 0 < len(key) <= LONGEST_KEY or not all(map(_is_allowed, key)):
        raise ValueError(
            f"{format_value(key)} is not a key of 1 to {LONGEST_KEY} printable ASCII characters,"
            " without spaces, commas, double quotes or backslashes"
        )
    return key


def quote_idempotency_key(key: str) -> str:
    """Write a key as the value of the header: a String of RFC 9651."""
    return f'"{key}"'


def read_idempotency_key(value: str) -> str:
    """Read the value of the header; `ValueError` says what a key may be."""
    written = value.strip()
    is_quoted = len(written) > 1 and written.startswith('"') and written.endswith('"')
    return check_idempotency_key(written[1:-1] if is_quoted else written)


def _is_allowed(character: str) -> bool:
    return "!" <= character <= "~" and character not in _EXCLUDED
