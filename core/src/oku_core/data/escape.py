"""How values are written where they stand, so that none ends what it stands in or begins another."""

import json
import re
import string
from collections.abc import Callable, Sequence
from typing import NamedTuple

_NOT_IN_HEADERS = bytes({*range(32), 127} - {*b"\t"})
CONTROL_CHARACTER = re.compile(b"[" + re.escape(_NOT_IN_HEADERS) + b"]")
"""What the value of a header may not have (RFC 9110, section 5.5)."""

_BYTES = bytes(range(256))
_AS_SPACES = bytes.maketrans(_NOT_IN_HEADERS, b" " * len(_NOT_IN_HEADERS))
_CONTROL_CHARACTERS = bytes(range(32))
_UNRESERVED = (string.ascii_letters + string.digits + "-._~").encode()
"""The characters that stand for themselves everywhere in a URL (RFC 3986, section 2.3)."""
_RESERVED = re.compile(rb"[^A-Za-z0-9._~-]")
_BETWEEN = b"\n"
_PERCENT_ENCODED = {bytes([byte]): b"%%%02X" % byte for byte in range(256)}


class Escape(NamedTuple):
    """How a value is written in one kind of place; values are UTF-8.

    Attributes:
        plain: the bytes that stand there as they are.
        escape: writes a value; what it makes of one character does not depend on those around it.
    """

    plain: bytes
    escape: Callable[[bytes], bytes]

    def write_all(self, values: Sequence[bytes]) -> Sequence[bytes]:
        """Write values; those that need nothing cost next to nothing, and the others little together."""
        if not b"".join(values).translate(None, self.plain):
            return values
        written = self.escape(_BETWEEN.join(values)).split(self.escape(_BETWEEN))
        # There are more pieces than values if one of these has what a line break is written as.
        return written if len(written) == len(values) else list(map(self.escape, values))


def _encode_percent(value: bytes) -> bytes:
    return _RESERVED.sub(lambda found: _PERCENT_ENCODED[found[0]], value)


def _encode_json(value: bytes) -> bytes:
    return json.dumps(value.decode(), ensure_ascii=False)[1:-1].encode()


def _encode_header(value: bytes) -> bytes:
    return value.translate(_AS_SPACES)


IN_URL = Escape(_UNRESERVED, _encode_percent)
"""A part of a path or a query: percent-encoded, so that it stays one part (RFC 3986, section 2.1)."""
IN_JSON = Escape(_BYTES.translate(None, _CONTROL_CHARACTERS + b'"\\'), _encode_json)
"""A part of a string in JSON."""
IN_HEADER = Escape(_BYTES.translate(None, _NOT_IN_HEADERS), _encode_header)
"""The value of a header, or a part of it. The scan refuses control characters; they never go out, in any
case, and are spaces instead (RFC 9110, section 5.5)."""
AS_TEXT = Escape(_BYTES, bytes)
"""A part of a text, as it is."""
