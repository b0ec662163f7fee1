"""Which headers a spec may not have: those that say where a message ends, or what a connection is for.

A header that contradicts the body makes the target read a part of one request as the beginning of the next
one (RFC 9112, section 6), so that nothing that is counted after it is true.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from oku_core.errors import format_value
from oku_core.spec.target import INDEX_PLACEHOLDER

_SINGLE = frozenset({"host", "content-length"})
_REFUSED = {
    "transfer-encoding": "bodies are sent whole, with their length; leave the header out",
    "expect": "bodies are sent at once; leave the header out",
    "upgrade": "connections are for HTTP/1.1 alone; leave the header out",
    "http2-settings": "connections are for HTTP/1.1 alone; leave the header out",
}
_CONNECTION_OPTIONS = frozenset({"close", "keep-alive"})
_CLOSE = "close"


def find_framing_fault(headers: Sequence[str], body: str | None) -> str | None:
    """What is wrong with the headers of a spec beside its body, or None.

    Args:
        headers: each of the form `Name: value`.
        body: of each request, `{i}` in it perhaps; None without one.
    """
    split = [(name, value.strip()) for name, _, value in (header.partition(":") for header in headers)]
    counts = Counter(name.lower() for name, _ in split)
    for name, value in split:
        shown = format_value(f"{name}: {value}")
        if why := _REFUSED.get(name.lower()):
            return f"{shown}: {why}"
        if name.lower() in _SINGLE and counts[name.lower()] > 1:
            return f"{name}: is given twice"
        if name.lower() == "content-length" and (why := _find_length_fault(value, body)):
            return f"{shown}: {why}; leave the header out, Oku sends it"
        if name.lower() == "connection" and not set(_split_options(value)) <= _CONNECTION_OPTIONS:
            return f"{shown}: only {' and '.join(sorted(_CONNECTION_OPTIONS))} are known"
    return None


def asks_to_close(headers: Iterable[str]) -> bool:
    """Whether each request of a spec is to be the last one on its connection."""
    split = (header.partition(":") for header in headers)
    return any(name.lower() == "connection" and _CLOSE in _split_options(value) for name, _, value in split)


def _find_length_fault(value: str, body: str | None) -> str | None:
    text = body or ""
    if INDEX_PLACEHOLDER in text:
        return f"the length of a body with {INDEX_PLACEHOLDER} in it varies"
    length = len(text.encode())
    if not re.fullmatch("[0-9]{1,18}", value) or int(value) != length:
        return f"the body has {length} bytes"
    return None


def _split_options(value: str) -> list[str]:
    return [option.strip().lower() for option in value.split(",")]
