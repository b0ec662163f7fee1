"""What the answers of a target must be like for their requests to count as ok."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from oku_core.errors import format_value
from oku_core.spec.values.check import (
    JsonValue,
    SizeBound,
    parse_contained,
    parse_expected_headers,
    parse_json_values,
    parse_sizes,
)
from oku_core.spec.values.expected_status import ExpectedStatus, parse_expect_status
from oku_core.spec.values.header import Header
from oku_core.spec.values.pattern import parse_patterns
from oku_core.spec.values.quantity import parse_duration_between

_SHORTEST_WITHIN, _LONGEST_WITHIN = "1ms", "1h"


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an answer must be like; what is left out is not checked.

    An answer with another status is an `unexpected_status`; one that fails anything else a `failed_check`.

    Attributes:
        status: the statuses of which it must have one.
        body: texts that its body must contain.
        match: regular expressions that its body must match anywhere.
        json: values that its body, as JSON, must have.
        header: headers that it must have, with the value that each must have, if one is given.
        size: bounds of the size of its body, in bytes as they are sent.
        within_s: how many seconds it may take from sending to its last byte.
    """

    status: tuple[ExpectedStatus, ...] = ()
    body: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    json: tuple[JsonValue, ...] = ()
    header: tuple[Header, ...] = ()
    size: tuple[SizeBound, ...] = ()
    within_s: float | None = None

    def complete(self, shared: "Expectation") -> "Expectation":
        """The same, with what it leaves out as all targets share it."""
        given = msgspec.structs.asdict(self)
        left_out = {
            name: getattr(shared, name) for name, value in given.items() if value is None or value == ()
        }
        return msgspec.structs.replace(self, **left_out)


def parse_within_s(value: object) -> float:
    """Parse how long an answer may take, into seconds."""
    return parse_duration_between(value, _SHORTEST_WITHIN, _LONGEST_WITHIN)


def find_body_check(expectation: Expectation) -> str | None:
    """The first key by which an expectation asks for something in a body; None if it asks for nothing."""
    return next((key for key in ("body", "match", "json") if getattr(expectation, key)), None)


_PARSER_BY_KEY: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "status": ("status", parse_expect_status),
    "body": ("body", parse_contained),
    "match": ("match", parse_patterns),
    "json": ("json", parse_json_values),
    "header": ("header", parse_expected_headers),
    "size": ("size", parse_sizes),
    "within": ("within_s", parse_within_s),
}


def parse_expectation(value: object) -> Expectation:
    """Parse the mapping `expect` of a target; raise `ValueError` that names the key that is wrong."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{format_value(value)} is not a mapping of {', '.join(_PARSER_BY_KEY)}")  # noqa: TRY004  # the input is wrong, not the call
    parsed: dict[str, Any] = {}
    for key, content in value.items():
        if key not in _PARSER_BY_KEY:
            raise ValueError(f"{format_value(key)}: unknown key, known keys are {', '.join(_PARSER_BY_KEY)}")
        attribute, parse = _PARSER_BY_KEY[key]
        try:
            parsed[attribute] = parse(content)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error
    return Expectation(**parsed)


def build_expectation_mapping(expectation: Expectation) -> dict[str, Any]:
    """Write an expectation as a mapping; `parse_expectation` turns it back into an equal one."""
    mapping: dict[str, Any] = {}
    for key, (attribute, _) in _PARSER_BY_KEY.items():
        value = getattr(expectation, attribute)
        if isinstance(value, tuple):
            value = [str(item) for item in value]
        if value:
            mapping[key] = value
    return mapping
