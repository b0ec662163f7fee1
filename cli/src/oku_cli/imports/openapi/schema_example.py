"""Makes a value that fits a JSON schema: an example if it has one, else the least that is allowed.

Schemas follow OpenAPI 3.0 and 3.1. A value that cannot be made up, such as a text for a pattern, is noted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from oku_cli.imports.openapi.schema_number import make_number
from oku_cli.imports.openapi.schema_parts import DEEPEST, Resolve, SchemaParts, find_type
from oku_core.errors import format_value

_MOST_VALUES = 1_000
"""Of one request; each schema may refer to many others."""
_GIVEN_FOR_ONE, _CHARACTERS_FOR_ONE = 10, 1_000
"""Ten values from the document, or 1,000 characters of them, count as one that is made."""
_LONGEST_PLACE = 200
_TEXT_BY_FORMAT = {
    "date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z", "duration": "P1D",
    "uuid": "00000000-0000-4000-8000-000000000000", "email": "user@example.com", "uri": "http://example.com/",
    "url": "http://example.com/", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
    "byte": "AA==", "password": "password",
}  # fmt: skip


class ExampleMaker:
    """Makes values, and notes their possible faults.

    Args:
        resolve: follows a `$ref`; gives any other mapping back.

    Attributes:
        made: how many values there are; a large value counts several times.
        notes: their possible faults.
    """

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self.made = 0
        self._is_full = False
        self._open: list[int] = []
        self._parts = SchemaParts(resolve)
        self.notes: list[str] = []

    def make(self, schema: Any, where: str, depth: int = 0) -> Any:
        """Make a value.

        Args:
            schema: that it has to fit.
            where: how a note names its place.
            depth: how many schemas it is within.
        """
        where = where[-_LONGEST_PLACE:]
        resolved = self._resolve(schema)
        if depth > DEEPEST:
            given = self.find(resolved)
            if given is None:
                self.notes.append(f"{where} is nested too deep; null stands for the rest")
            return given if given is None else self.use_given(given, where, schema)
        self._open.append(id(resolved))
        value = self._make(schema, where, depth)
        self._open.pop()
        return value

    def _make(self, schema: Any, where: str, depth: int) -> Any:
        parts = self._parts.list_parts(schema, depth, _MOST_VALUES - self.made)
        self.made += len(parts)
        given = self.find(parts[0])
        if given is not None:
            return self.use_given(given, where, schema)
        if self.made > _MOST_VALUES:
            return self._leave_out(where)
        if any(find_type(part) == "object" for part in parts):
            return self._make_object(parts, where, depth)
        for part in parts:
            if (given := self.find(part)) is not None:
                return self.use_given(given, where, schema)
        typed = (part for part in parts if "type" in part or "items" in part)
        return self._make_typed(next(typed, parts[0]), where, depth)

    def find(self, holder: Mapping[str, Any]) -> Any:
        """A given value: an example, a constant, a default, the first of a choice; or None."""
        for key in ("example", "const", "default"):
            if holder.get(key) is not None:
                return holder[key]
        examples = holder.get("examples")
        if isinstance(examples, Mapping):
            examples = [self._read_example(str(name), each) for name, each in examples.items()][:1]
        for choice in (examples, holder.get("enum")):
            if isinstance(choice, list) and (some := [each for each in choice if each is not None]):
                return some[0]
        return None

    def use_given(self, given: Any, where: str, schema: Any) -> Any:
        """A value that the document gives, as long as there is room for it; text where that has to be."""
        if self.made > _MOST_VALUES:
            return self._leave_out(where)
        self.made += _count_values(given) // _GIVEN_FOR_ONE
        return self._parts.fit(given, schema)

    def _read_example(self, name: str, written: Any) -> Any:
        example = self._resolve(written)
        if "externalValue" in example:
            self.notes.append(f"its example {name} is not in the document: {example['externalValue']}")
        return example.get("value")

    def _leave_out(self, where: str) -> None:
        if not self._is_full:
            self._is_full = True
            self.notes.append(f"{where} is too large; null stands for the rest")

    def _make_typed(self, schema: Mapping[str, Any], where: str, depth: int) -> Any:
        match find_type(schema):
            case "array":
                return self._make_list(schema, where, depth) if schema.get("items") else []
            case "integer" | "number" as kind:
                number = make_number(schema, is_whole=kind == "integer")
                if number is None:
                    self.notes.append(f"{where} is 1, because no number that fits its schema was found")
                return 1 if number is None else number
            case "boolean":
                return True
            case "null":
                return None
        return self._make_text(schema, where)

    def _make_list(self, schema: Mapping[str, Any], where: str, depth: int) -> list[Any]:
        least = schema.get("minItems", 0)
        if schema.get("maxItems") == 0 or (not least and id(self._resolve(schema["items"])) in self._open):
            return []
        before = self.made
        item = self.make(schema["items"], f"{where}[]", depth + 1)
        room = max(0, _MOST_VALUES - self.made) // max(1, self.made - before)
        more = min(max(1, min(least, 100)) - 1, room)
        if more and schema.get("uniqueItems"):
            self.notes.append(f"{where} has equal items, though its schema wants different ones")
        self.made += more * (self.made - before)
        return [item] * (1 + more)

    def _make_object(self, parts: Sequence[Mapping[str, Any]], where: str, depth: int) -> dict[str, Any]:
        """The required properties, and those with an example or a default, that a request may have."""
        required: set[str] = set()
        contents: dict[str, Any] = {}
        examples: dict[str, Any] = {}
        shape = self._parts.build_shape(parts)
        for part in parts:
            written = part.get("required")
            required.update(filter(_is_text, written if isinstance(written, list) else ()))
            for name, content in (part.get("properties") or {}).items():
                if name not in contents or self.find(self._resolve(content)) is not None:
                    contents[name] = content
            if isinstance(given := self.find(part), Mapping):
                examples |= self._parts.fit_shape(given, shape)
        made = {
            name: self.make(content, f"{where}.{name}" if where else name, depth + 1)
            for name, content in contents.items()
            if name not in examples
            and name not in shape.read_only
            and (name in required or self.find(self._resolve(content)) is not None)
        }
        return made | examples

    def _make_text(self, schema: Mapping[str, Any], where: str) -> str:
        if schema.get("pattern"):
            self.notes.append(f"{where} is made up, and may not match {format_value(schema['pattern'])}")
        text = _TEXT_BY_FORMAT.get(str(schema.get("format")), "string")
        text = text.ljust(min(int(schema.get("minLength", 0)), 1000), "x")
        longest = schema.get("maxLength")
        return text[:longest] if isinstance(longest, int) else text


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _count_values(given: Any) -> int:
    if isinstance(given, str):
        return 1 + len(given) * _GIVEN_FOR_ONE // _CHARACTERS_FOR_ONE
    if isinstance(given, Mapping):
        return sum(_count_values(key) + _count_values(each) for key, each in given.items())
    return 1 + sum(map(_count_values, given)) if isinstance(given, list) else 1
