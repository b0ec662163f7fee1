"""The targets of a spec: the kinds of requests that a run sends, and which of their responses are ok."""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from oku_core.errors import format_value
from oku_core.json_reader import decode_document
from oku_core.process.redaction import MASK, redact
from oku_core.spec.values.check import (
    ExpectedStatus,
    JsonValue,
    SizeBound,
    parse_contained,
    parse_expect_status,
    parse_expected_headers,
    parse_json_values,
    parse_sizes,
)
from oku_core.spec.values.pattern import parse_patterns
from oku_core.spec.values.quantity import parse_count, parse_duration_between
from oku_core.spec.values.request_content import JSON_TYPE, Header, find_body_type, parse_body, parse_headers
from oku_core.spec.values.scalar import LONGEST_NAME, parse_method, parse_name, parse_scalar, read_json_value
from oku_core.spec.values.template import check_secrets
from oku_core.spec.values.url import parse_reference

_SHORTEST_WITHIN, _LONGEST_WITHIN = "1ms", "1h"


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The checks of a response; keys that are left out check nothing.

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


MOST_TARGETS = 100
"""How many targets a run may have; each of them has an account of its own."""
HEAVIEST = 1_000
"""The largest weight."""
_FORM = "a mapping such as {name: home, url: /}"


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of request.

    Attributes:
        name: names the target wherever figures are shown; unique in a spec.
        weight: how many requests of each block of as many as all weights sum to go to it.
        url: a whole URL, or the part after the base URL; it may contain placeholders.
        method: the HTTP method.
        headers: added to the headers of all targets; one of the same name replaces them.
        body: may contain placeholders.
        is_json: whether the body was given as JSON, so that values of placeholders are escaped in it.
        expect: the checks of its responses; for keys left out, the checks of all targets apply.
    """

    name: str
    weight: int = 1
    url: str
    method: str = "GET"
    headers: tuple[Header, ...] = ()
    body: str | None = None
    is_json: bool = False
    expect: Expectation = Expectation()


def parse_targets(value: object) -> tuple[Target, ...]:
    """Parse a list of mappings; raise `ValueError` that names the target and the key that is wrong."""
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{format_value(value)} is not a list of mappings such as {{name: home, url: /}}")
    if len(value) > MOST_TARGETS:
        raise ValueError(f"{len(value)} targets are given; at most {MOST_TARGETS} are allowed")
    targets = tuple(_parse_target(item, place) for place, item in enumerate(value, 1))
    names = [target.name for target in targets]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"{format_value(name)}: two targets have this name; give one of them another")
    return targets


def add_content_type(
    target: Target, shared: Iterable[Header], columns: Collection[str] = (), whole_row: str = ""
) -> Target:
    """Add the type of the body, unless a header of the target, or one of all targets, sets it.

    `columns` and `whole_row` are as in `find_body_type`.
    """
    if target.body is None or any(header.is_named("content-type") for header in (*shared, *target.headers)):
        return target
    kind = JSON_TYPE if target.is_json else find_body_type(target.body, columns, whole_row)
    if kind is None:
        return target
    return msgspec.structs.replace(target, headers=(*target.headers, Header(f"Content-Type: {kind}")))


def build_target_mapping(target: Target) -> dict[str, Any]:
    """Write a target as a mapping; `parse_targets` turns it back into an equal one."""
    mapping: dict[str, Any] = {
        "name": target.name, "weight": target.weight, "method": target.method, "url": target.url,
    }  # fmt: skip
    if target.headers:
        mapping["header"] = [str(header) for header in target.headers]
    if target.body is not None:
        mapping |= {"json": decode_document(target.body)} if target.is_json else {"body": target.body}
    if expect := build_expectation_mapping(target.expect):
        mapping["expect"] = expect
    return mapping


def _parse_target(value: object, place: int) -> Target:
    if not isinstance(value, Mapping):
        raise ValueError(f"number {place}: {format_value(value)} is not {_FORM}")  # noqa: TRY004   # the input is wrong, not the call
    name = value.get("name")
    shown = f"number {place}" if name is None else format_value(name)
    parsed: dict[str, Any] = {}
    for key, content in value.items():
        if key not in _PARSER_BY_TARGET_KEY:
            raise ValueError(f"{shown}: {format_value(key)}: unknown key{suggest(str(key), TARGET_KEYS)}")
        attribute, parse = _PARSER_BY_TARGET_KEY[key]
        try:
            parsed[attribute] = parse(content)
        except ValueError as error:
            raise ValueError(f"{shown}: {key}: {error}") from error
    if "url" not in parsed:
        raise ValueError(f"{shown}: url: is not given")
    if "body" in value and "json" in value:
        raise ValueError(f"{shown}: json: cannot be combined with body")
    return _complete(parsed)


def _complete(parsed: dict[str, Any]) -> Target:
    """Add the values that follow from the given ones."""
    if "json" in parsed:
        parsed["body"], parsed["is_json"] = parsed.pop("json"), True
    method = parsed.setdefault("method", "GET" if parsed.get("body") is None else "POST")
    # The name is shown wherever figures are, so that it must not have a password or a token.
    place, mark, _ = redact(parsed["url"]).partition("?")
    parsed.setdefault("name", f"{method} {place}{mark}{mark and MASK}"[:LONGEST_NAME].rstrip())
    return Target(**parsed)


def _parse_target_name(value: object) -> str:
    name = parse_name(parse_scalar(value))
    if not name or name != name.strip():
        raise ValueError(f"{format_value(name)} is empty, or begins or ends with a space")
    return name


def _parse_weight(value: object) -> int:
    weight = parse_count(value)
    if not 1 <= weight <= HEAVIEST:
        raise ValueError(f"{format_value(value)} is not between 1 and {HEAVIEST:_}")
    return weight


def _parse_json(value: object) -> str:
    body = msgspec.json.encode(read_json_value(value)).decode()
    check_secrets(body)
    return body


_PARSER_BY_TARGET_KEY: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "name": ("name", _parse_target_name),
    "weight": ("weight", _parse_weight),
    "method": ("method", parse_method),
    "url": ("url", parse_reference),
    "header": ("headers", parse_headers),
    "body": ("body", parse_body),
    "json": ("json", _parse_json),
    "expect": ("expect", parse_expectation),
}

TARGET_KEYS = tuple(_PARSER_BY_TARGET_KEY)
"""What the mapping of a target may have."""


def suggest(key: str, known: Collection[str]) -> str:
    """A hint for an unknown key: the nearest of the known ones, or all."""
    near = difflib.get_close_matches(key, known, n=1)
    return f", did you mean {near[0]}?" if near else f", known keys are {', '.join(known)}"
