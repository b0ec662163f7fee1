"""Reads YAML within a bounded time and size. No other module parses YAML.

Values are built from parser events, so the depth is bounded before any stack overflows, and everything that
an alias stands for is counted each time. How a scalar without quotes is read depends on the kind of file; a
key is always text.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from oku_core.errors import format_value
from oku_core.json_reader import JsonError, JsonLimitError, decode_json

MOST_ALIASED = 1_000_000
"""How many values all aliases of a file may stand for."""
_MOST_DIRECTIVES = 1_000
"""libyaml compares each tag directive with all before it, before it gives the first event."""

# libyaml reads a file of the largest size in less than a second, PyYAML's own reader takes ten.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTANTS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_STANDARD_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({"!", f"{_STANDARD_TAG}str"})
_KNOWN_TAGS = frozenset(f"{_STANDARD_TAG}{name}" for name in ("map", "seq", "int", "float", "bool", "null"))
_MERGE = "<<"


@dataclass(frozen=True)
class YamlKind:
    """The YAML that a kind of file may contain, and how its scalars are read.

    Attributes:
        deepest: how many levels of mappings and lists it may have.
        read_plain: reads a scalar without quotes that is neither null, true nor false.
        allows_aliases: whether it may have aliases, merge keys and the tags of JSON's types.
    """

    deepest: int
    read_plain: Callable[[str], Any]
    allows_aliases: bool = False


def decode_yaml(content: bytes, kind: YamlKind) -> Any:
    """The only document of a YAML text as mappings with text for keys, lists and scalars.

    Raises:
        ValueError: it is not YAML, or has YAML that such a file may not have; the message names the line.
    """
    return _Builder(content, kind).build()


def decode_yaml_or_json(content: bytes, kind: YamlKind) -> Any:
    """The same for a text that may be JSON: YAML takes almost all of it, but neither tabs nor surrogates.

    Raises:
        ValueError: it is neither.
    """
    if content.removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
        try:
            return decode_json(content)
        except JsonLimitError:
            raise
        except JsonError:
            pass  # YAML may begin with a brace, too
    return decode_yaml(content, kind)


class _Builder:
    """Builds the values of one text."""

    def __init__(self, content: bytes, kind: YamlKind) -> None:
        self._events = _parse(content)
        self._kind = kind
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        """By anchor, a value, how many values it stands for, and how many levels it has below it."""
        self._count = self._aliased = self._lowest = 0

    def build(self) -> Any:
        documents: list[Any] = []
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if documents:
                    raise _build_error(event, "a second document begins, only one is allowed")
                documents.append(self._build_value(next(self._events), 1))
        return documents[0] if documents else None

    def _build_value(self, event: Any, depth: int) -> Any:  # a `yaml.Event`: its stubs do not know which
        if isinstance(event, yaml.AliasEvent):
            return self._follow(event, depth)
        self._check_tag(event)
        self._check_depth(event, depth)
        before, lowest = self._count, self._lowest
        self._count += 1
        self._lowest = depth
        if isinstance(event, yaml.MappingStartEvent):
            value: Any = self._build_mapping(depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = [self._build_value(item, depth + 1) for item in self._until(yaml.SequenceEndEvent)]
        else:
            value = self._build_scalar(event)
        if self._kind.allows_aliases and event.anchor is not None:
            self._anchors[event.anchor] = value, self._count - before, self._lowest - depth
        self._lowest = max(lowest, self._lowest)
        return value

    def _build_mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for event in self._until(yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _build_error(event, "a key is not text")
            self._check_tag(event)
            value = self._build_value(next(self._events), depth + 1)
            if self._kind.allows_aliases and event.value == _MERGE and event.implicit[0]:
                merged |= _merge(event, value)
            elif event.value in mapping:
                raise _build_error(event, f"{format_value(event.value)}: is given twice")
            else:
                mapping[event.value] = value
        return merged | mapping if merged else mapping

    def _build_scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        is_plain = event.implicit[0] or event.tag in _KNOWN_TAGS
        if not is_plain:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        try:
            return self._kind.read_plain(text)
        except ValueError as error:
            raise _build_error(event, str(error)) from error

    def _follow(self, event: yaml.AliasEvent, depth: int) -> Any:
        name = f"*{format_value(event.anchor)}"
        if not self._kind.allows_aliases:
            raise _build_error(event, f"{name}: aliases are not allowed, write the value itself")
        if event.anchor not in self._anchors:
            raise _build_error(event, f"{name}: no value before it has this anchor")
        value, count, levels = self._anchors[event.anchor]
        self._check_depth(event, depth + levels)
        self._lowest = max(self._lowest, depth + levels)
        self._count += count
        self._aliased += count
        if self._aliased > MOST_ALIASED:
            raise _build_error(event, f"{name}: aliases stand for more than {MOST_ALIASED:,} values")
        return value

    def _check_depth(self, event: yaml.Event, depth: int) -> None:
        if depth > self._kind.deepest:
            raise _build_error(event, f"is nested more than {self._kind.deepest} deep")

    def _check_tag(self, event: Any) -> None:
        tag = event.tag
        if tag is None or (self._kind.allows_aliases and (tag in _TEXT_TAGS or tag in _KNOWN_TAGS)):
            return
        written = f"!!{tag.removeprefix(_STANDARD_TAG)}" if tag.startswith(_STANDARD_TAG) else tag
        allowed = "only tags of JSON's types are" if self._kind.allows_aliases else "tags are not"
        raise _build_error(event, f"{format_value(written)}: {allowed} allowed")

    def _until(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        for event in self._events:
            if isinstance(event, end):
                return
            yield event


def _merge(event: yaml.Event, value: Any) -> Mapping[str, Any]:
    """The pairs of a mapping, or of several; the first mapping with a key wins."""
    parts = value if isinstance(value, list) else [value]
    merged: dict[str, Any] = {}
    for part in reversed(parts):
        if not isinstance(part, dict):
            raise _build_error(event, f"{_MERGE}: is not a mapping")
        merged |= part
    return merged


def _parse(content: bytes) -> Iterator[yaml.Event]:
    if content.count(b"%TAG") + content.count(b"%\0T\0A\0G") > _MOST_DIRECTIVES:
        raise ValueError(f"has more than {_MOST_DIRECTIVES:,} tag directives")
    try:
        yield from yaml.parse(content, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{location}is not YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        raise ValueError(f"is not YAML: byte {error.position}: {error.reason}") from error


def _build_error(event: yaml.Event, problem: str) -> ValueError:
    location = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
    return ValueError(f"{location}{problem}")
