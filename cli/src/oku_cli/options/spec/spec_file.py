"""A spec file goes in, a mapping of its keys to what stands there comes out, within a bounded time and size.

A scalar means what the same text means as a flag: only `null`, `true` and `false` are more than text, so that
`010`, `1.10`, `no` and `2020-01-01` stay what was written. Aliases and tags are refused (decision 25).
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import PurePath
from typing import Any

import yaml

from oku_cli.options.spec.input_file import STANDARD_INPUT, STANDARD_INPUT_LABEL, read_input
from oku_core.errors import UserError, format_value
from oku_core.spec.parser import Source
from oku_core.spec.strict_json import decode_json
from oku_core.spec.values.scalar import PlainScalar

DEEPEST = 40
"""Levels of a file; the body of a target may have 32, from the fifth on."""

# libyaml reads a file of the largest size in less than a second, PyYAML's own reader takes ten.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTANTS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_build_plain_scalar = lru_cache(maxsize=1024)(PlainScalar)  # a file may repeat one half a million times
_STANDARD_TAG = "tag:yaml.org,2002:"


def read_spec_file(name: str) -> Source:
    """A YAML file as a source of values, or JSON if it is called so; `-` is either on standard input.

    Raises:
        UserError: it cannot be read, is too large, or is not what its name says.
    """
    label = STANDARD_INPUT_LABEL if name == STANDARD_INPUT else name
    content = read_input(name, label)
    try:
        values = _decode(content, name)
    except ValueError as error:
        raise UserError(f"{label}: {error}") from error
    return Source(label, {} if values is None else values)  # an empty file says nothing


def decode_yaml(content: bytes) -> Any:
    """The only document of a YAML text as mappings with text for keys, lists, text, None, True and False.

    Raises:
        ValueError: it is not YAML, or YAML that a spec file may not have; says in which line.
    """
    events = _parse(content)
    documents: list[Any] = []
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if documents:
                raise _build_error(event, "a second document begins, only one is allowed")
            documents.append(_build_value(next(events), events, 1))
    return documents[0] if documents else None


def _decode(content: bytes, name: str) -> Any:
    if PurePath(name).suffix == ".json":
        return decode_json(content)
    if name == STANDARD_INPUT:
        if not content.strip():
            # Whoever was to write it has failed, and a run of all defaults is not what was meant.
            raise ValueError("is empty, a spec is expected")
        if content.lstrip().startswith(b"{"):
            # YAML takes almost all of JSON, but neither tabs nor surrogates.
            with suppress(ValueError):
                return decode_json(content)
    return decode_yaml(content)


def _parse(content: bytes) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(content, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{location}is not YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        raise ValueError(f"is not YAML: byte {error.position}: {error.reason}") from error


def _build_value(event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Any:
    if isinstance(event, yaml.AliasEvent):
        raise _build_error(
            event, f"*{format_value(event.anchor)}: aliases are not allowed, write the value itself"
        )
    if (tag := getattr(event, "tag", None)) is not None:
        written = f"!!{tag.removeprefix(_STANDARD_TAG)}" if tag.startswith(_STANDARD_TAG) else tag
        raise _build_error(event, f"{format_value(written)}: tags are not allowed")
    if depth > DEEPEST:
        raise _build_error(event, f"is nested more than {DEEPEST} deep")
    if isinstance(event, yaml.MappingStartEvent):
        return _build_mapping(events, depth)
    if isinstance(event, yaml.SequenceStartEvent):
        return [_build_value(item, events, depth + 1) for item in _until(yaml.SequenceEndEvent, events)]
    if not isinstance(event, yaml.ScalarEvent):
        raise TypeError(f"{event} begins no value")
    text: str = event.value
    is_plain = event.implicit[0]
    return _CONSTANTS.get(text, _build_plain_scalar(text)) if is_plain else text


def _build_mapping(events: Iterator[yaml.Event], depth: int) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for event in _until(yaml.MappingEndEvent, events):
        if not isinstance(event, yaml.ScalarEvent):
            raise _build_error(event, "a key is not text")
        _build_value(event, events, depth + 1)  # it may have a tag
        if event.value in mapping:
            raise _build_error(event, f"{format_value(event.value)}: is given twice")
        mapping[event.value] = _build_value(next(events), events, depth + 1)
    return mapping


def _until(end: type[yaml.Event], events: Iterator[yaml.Event]) -> Iterator[yaml.Event]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _build_error(event: yaml.Event, problem: str) -> ValueError:
    location = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
    return ValueError(f"{location}{problem}")
