"""The targets of a spec: the kinds of requests that a run sends, and what their answers must be like."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from oku_core.errors import format_value
from oku_core.json_reader import decode_document
from oku_core.process.redaction import MASK, redact
from oku_core.spec.expectation import Expectation, build_expectation_mapping, parse_expectation
from oku_core.spec.values.body import JSON_TYPE, find_body_type, parse_body
from oku_core.spec.values.header import Header, parse_headers
from oku_core.spec.values.method import parse_method
from oku_core.spec.values.name import LONGEST_NAME, parse_name
from oku_core.spec.values.placeholder import check_secrets
from oku_core.spec.values.quantity import parse_count
from oku_core.spec.values.scalar import parse_scalar, read_json_value
from oku_core.spec.values.url import parse_reference

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
        url: a URL, or what comes after the base URL; it may contain placeholders.
        method: the HTTP method.
        headers: headers in addition to those of all targets; one of the same name takes their place.
        body: what is sent; it may contain placeholders.
        is_json: whether the body was given as JSON, so that what placeholders stand for is escaped in it.
        expect: what answers must be like; what it leaves out is as for all targets.
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


def add_content_type(target: Target, shared: Iterable[Header]) -> Target:
    """Add the type of the body, unless a header of the target, or one of all targets, says what it is."""
    if target.body is None or any(header.is_named("content-type") for header in (*shared, *target.headers)):
        return target
    kind = JSON_TYPE if target.is_json else find_body_type(target.body)
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
        if key not in _PARSER_BY_KEY:
            raise ValueError(f"{shown}: {format_value(key)}: unknown key{_suggest(str(key))}")
        attribute, parse = _PARSER_BY_KEY[key]
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
    """Add what follows from what was given."""
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


_PARSER_BY_KEY: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "name": ("name", _parse_target_name),
    "weight": ("weight", _parse_weight),
    "method": ("method", parse_method),
    "url": ("url", parse_reference),
    "header": ("headers", parse_headers),
    "body": ("body", parse_body),
    "json": ("json", _parse_json),
    "expect": ("expect", parse_expectation),
}

TARGET_KEYS = tuple(_PARSER_BY_KEY)
"""What the mapping of a target may have."""


def _suggest(key: str) -> str:
    near = difflib.get_close_matches(key, _PARSER_BY_KEY, n=1)
    return f", did you mean {near[0]}?" if near else f", known keys are {', '.join(TARGET_KEYS)}"
