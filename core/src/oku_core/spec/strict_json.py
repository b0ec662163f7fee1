"""Decodes JSON from outside into plain values, and refuses what JSON parsers disagree about.

RFC 8259 leaves it to the parser what a repeated name means and how large a number may be.
"""

import json
from typing import Any, NoReturn

from oku_core.errors import format_value

MOST_DIGITS = 400


def decode_json(content: bytes) -> Any:
    """Decode a JSON text.

    Raises:
        ValueError: the text is not JSON, gives a key twice, is nested too deep, or has a number with more
            than `MOST_DIGITS` digits. The message is one line.
    """
    try:
        return json.loads(
            content,
            object_pairs_hook=_build_object,
            parse_int=_parse_int,
            parse_constant=_refuse_constant,
        )
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("is nested too deep") from error


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"{format_value(key)}: is given twice")
    return values


def _parse_int(digits: str) -> int:
    # Python refuses more than 4300 digits with a message of its own, and is slow with fewer.
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits; at most {MOST_DIGITS} are allowed")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"is not JSON: {name} is not a number")
