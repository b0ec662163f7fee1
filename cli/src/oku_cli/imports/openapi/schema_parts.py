"""Takes JSON schemas apart: their composition, and the resulting demands on a given value."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

DEEPEST = 8
"""Levels of schemas within schemas that are looked at."""
_MOST_PARTS = 1_000

Resolve = Callable[[Any], Mapping[str, Any]]


class WrittenNumber(float):
    """A number of a YAML document that keeps its digits: `1.10` may be meant as text.

    Attributes:
        text: as it is written.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Read a number of JSON."""
        number = super().__new__(cls, text)
        number.text = text
        return number


class SchemaShape(NamedTuple):
    """The demands of all parts of a schema on a given value.

    Attributes:
        properties: the schemas of its properties.
        read_only: the properties that are only for answers.
        items: the schema of its items.
        is_text: whether it has to be text.
    """

    properties: Mapping[str, Any]
    read_only: frozenset[str]
    items: Any
    is_text: bool


class SchemaParts:
    """Takes schemas apart.

    Args:
        resolve: follows a `$ref`; gives any other mapping back.
    """

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._shapes: dict[int, tuple[Any, SchemaShape]] = {}

    def list_parts(
        self, schema: Any, depth: int, room: int, *, is_given: bool = False
    ) -> list[Mapping[str, Any]]:
        """A schema without references, and those that it is composed of: all of `allOf`, one of a choice.

        Args:
            schema: with references.
            depth: how many schemas it is within.
            room: how many parts are enough.
            is_given: whether they are for a value that may be of any choice: none is made unless it is clear.
        """
        part = self._resolve(schema)
        if isinstance(schema, Mapping) and len(schema) > 1 and part is not schema:
            part = {**part, **schema}  # keywords beside a reference count as well (OpenAPI 3.1)
        parts = [part]
        if depth > DEEPEST:
            return parts
        composed = list(part.get("allOf") or ())
        for word in ("oneOf", "anyOf"):
            written = part.get(word) or []
            choices = [each for each in written if find_type(self._resolve(each)) != "null"] or written
            if len(choices) == 1 or (choices and not is_given):
                composed += [choices[0], *_list_discriminators(part, choices[0])]
        for each in composed:
            if len(parts) > room:
                break
            parts += self.list_parts(each, depth + 1, room - len(parts), is_given=is_given)
        return parts

    def fit(self, given: Any, schema: Any) -> Any:
        """The value without read-only properties; numbers are text where the schema wants text."""
        return self.fit_shape(given, self._find_shape(schema))

    def _find_shape(self, schema: Any) -> SchemaShape:
        if id(schema) not in self._shapes:
            parts = self.list_parts(schema, 0, _MOST_PARTS, is_given=True)
            self._shapes[id(schema)] = schema, self.build_shape(parts)
        return self._shapes[id(schema)][1]

    def build_shape(self, parts: Sequence[Mapping[str, Any]]) -> SchemaShape:
        """The combined shape of several parts of a schema: one of them may hide a property of another."""
        properties = [each for part in parts for each in (part.get("properties") or {}).items()]
        return SchemaShape(
            dict(properties),
            frozenset(name for name, content in properties if self._is_read_only(content)),
            next((part["items"] for part in parts if "items" in part), None),
            is_text=any(part.get("type") in ("string", ["string"]) for part in parts),
        )

    def fit_shape(self, given: Any, shape: SchemaShape, depth: int = 0) -> Any:
        """The same for a shape. YAML has quotes for text, people do not use them."""
        if given is None or isinstance(given, str) or depth > DEEPEST:
            return given
        if isinstance(given, Mapping):
            return {
                key: self.fit_shape(each, self._find_shape(shape.properties.get(key)), depth + 1)
                for key, each in given.items()
                if key not in shape.read_only
            }
        if isinstance(given, list):
            items = self._find_shape(shape.items)
            return [self.fit_shape(each, items, depth + 1) for each in given]
        if not shape.is_text:
            return given
        return given.text if isinstance(given, WrittenNumber) else json.dumps(given, default=str)

    def _is_read_only(self, content: Any) -> bool:
        """Whether a property is only for answers."""
        holders = (content if isinstance(content, Mapping) else {}, self._resolve(content))
        return any(each.get("readOnly") is True for each in holders)


def _list_discriminators(schema: Mapping[str, Any], chosen: Any) -> Iterator[Mapping[str, Any]]:
    """The property by which a service distinguishes choices, with the name of the chosen one."""
    discriminator = schema.get("discriminator")
    reference = chosen.get("$ref") if isinstance(chosen, Mapping) else None
    if isinstance(discriminator, Mapping) and isinstance(reference, str):
        mapping = discriminator.get("mapping") or {}
        names = [name for name, to in mapping.items() if to == reference]
        name = discriminator.get("propertyName")
        value = (names or [reference.rpartition("/")[2]])[0]
        yield {"required": [name], "properties": {name: {"const": value}}}


def find_type(schema: Mapping[str, Any]) -> str:
    """The first type that is not `null`; without a type, what the other words of a schema are for."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if kind is None:
        return "object" if "properties" in schema else "array" if "items" in schema else "string"
    return str(kind)
