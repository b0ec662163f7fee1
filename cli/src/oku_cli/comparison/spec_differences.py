"""What differs in two specs, key by key, without showing what may be a secret."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

_DIGEST = re.compile(r"(@sha256:[0-9a-f]{12})[0-9a-f]{52}")
Mask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class SpecDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A key with different values; None where a spec does not have it. Both may look alike, if masked."""

    key: str
    a: Any
    b: Any


def list_differences(first: Mapping[str, Any], second: Mapping[str, Any], mask: Mask) -> list[SpecDifference]:
    """List the keys whose values differ, those of the first spec first.

    Args:
        first: a spec, under the names that users write.
        second: another one.
        mask: hides what may be a secret.
    """
    shown_first, shown_second = mask(first), mask(second)
    return [
        SpecDifference(key=key, a=shown_first.get(key), b=shown_second.get(key))
        for key in {**first, **second}
        if first.get(key) != second.get(key)
    ]


def describe_value(value: Any) -> str:
    """A value of a spec in one line, as it may be written in a spec: `[http://a/, http://b/]`."""
    if value is None:
        return "-"
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _DIGEST.sub(r"\1…", text)
