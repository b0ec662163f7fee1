"""Makes a value that fits a JSON schema: an example if it has one, else the least that is allowed.

Schemas are those of OpenAPI 3.0 and 3.1. What cannot be made up, such as a text for a pattern, is noted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oku_core.errors import format_value

_DEEPEST = 8
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

Resolve = Callable[[Any], Mapping[str, Any]]


class ExampleMaker:
    """Makes values, and notes what may be wrong about them.

    Args:
        resolve: follows a `$ref`; gives any other mapping back.

    Attributes:
        made: how many values there are; a large value counts several times.
        notes: what may be wrong about them.
    """

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self.made = 0
        self._is_full = False
        self.notes: list[str] = []

    def make(self, schema: Any, where: str, depth: int = 0) -> Any:
        """Make a value.

        Args:
            schema: that it has to fit.
            where: how a note names its place.
            depth: how many schemas it is within.
        """
        schema = self._resolve(schema)
        where = where[-_LONGEST_PLACE:]
        given = find_given(schema)
        if given is not None:
            return self.take(given, where)
        if depth > _DEEPEST:
            self.notes.append(f"{where} contains itself; null stands for the rest")
            return None
        self.made += 1
        if self.made > _MOST_VALUES:
            return self._leave_out(where)
        for word in ("oneOf", "anyOf"):
            if choices := schema.get(word):
                return self.make(choices[0], where, depth + 1)
        if parts := schema.get("allOf"):
            made = [self.make(part, where, depth + 1) for part in parts]
            objects = [part for part in made if isinstance(part, Mapping)]
            own = self._make_object(schema, where, depth) if schema.get("properties") else {}
            return (
                {key: value for part in [*objects, own] for key, value in part.items()}
                if objects
                else made[0]
            )
        return self._make_typed(schema, where, depth)

    def take(self, given: Any, where: str) -> Any:
        """A value that the document gives, as long as there is room for it."""
        if self.made > _MOST_VALUES:
            return self._leave_out(where)
        self.made += _count_values(given) // _GIVEN_FOR_ONE
        return given

    def _leave_out(self, where: str) -> None:
        if not self._is_full:
            self._is_full = True
            self.notes.append(f"{where} is too large; null stands for the rest")

    def _make_typed(self, schema: Mapping[str, Any], where: str, depth: int) -> Any:
        match _find_type(schema):
            case "object":
                return self._make_object(schema, where, depth)
            case "array":
                return self._make_list(schema, where, depth) if schema.get("items") else []
            case "integer" | "number" as kind:
                return _make_number(schema, is_whole=kind == "integer")
            case "boolean":
                return True
            case "null":
                return None
        return self._make_text(schema, where)

    def _make_list(self, schema: Mapping[str, Any], where: str, depth: int) -> list[Any]:
        before = self.made
        item = self.make(schema["items"], f"{where}[]", depth + 1)
        room = max(0, _MOST_VALUES - self.made) // max(1, self.made - before)
        more = min(max(1, min(schema.get("minItems", 0), 100)) - 1, room)
        self.made += more * (self.made - before)
        return [item] * (1 + more)

    def _make_object(self, schema: Mapping[str, Any], where: str, depth: int) -> dict[str, Any]:
        """The required properties, and those with an example or a default."""
        written = schema.get("required")
        required = {each for each in written if isinstance(each, str)} if isinstance(written, list) else ()
        return {
            name: self.make(content, f"{where}.{name}" if where else name, depth + 1)
            for name, content in (schema.get("properties") or {}).items()
            if name in required or find_given(self._resolve(content)) is not None
        }

    def _make_text(self, schema: Mapping[str, Any], where: str) -> str:
        if schema.get("pattern"):
            self.notes.append(f"{where} is made up, and may not match {format_value(schema['pattern'])}")
        text = _TEXT_BY_FORMAT.get(str(schema.get("format")), "string")
        text = text.ljust(min(int(schema.get("minLength", 0)), 1000), "x")
        longest = schema.get("maxLength")
        return text[:longest] if isinstance(longest, int) else text


def find_given(holder: Mapping[str, Any]) -> Any:
    """The value that somebody has written down: an example, a constant, a default, the first of a choice."""
    for key in ("example", "const", "default"):
        if holder.get(key) is not None:
            return holder[key]
    examples = holder.get("examples")
    if isinstance(examples, Mapping):
        examples = [each.get("value") for each in examples.values() if isinstance(each, Mapping)]
    for choice in (examples, holder.get("enum")):
        if isinstance(choice, Sequence) and not isinstance(choice, str) and choice and choice[0] is not None:
            return choice[0]
    return None


def _count_values(given: Any) -> int:
    if isinstance(given, str):
        return 1 + len(given) * _GIVEN_FOR_ONE // _CHARACTERS_FOR_ONE
    if isinstance(given, Mapping):
        return sum(_count_values(key) + _count_values(each) for key, each in given.items())
    return 1 + sum(map(_count_values, given)) if isinstance(given, list) else 1


def _find_type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if kind is None:
        return "object" if "properties" in schema else "array" if "items" in schema else "string"
    return str(kind)


def _make_number(schema: Mapping[str, Any], *, is_whole: bool) -> int | float:
    """The least that is allowed and at least 1, or what is nearest to that."""
    low, high = schema.get("minimum"), schema.get("maximum")
    number: int | float = 1 if low is None or low < 1 else low
    above = schema.get("exclusiveMinimum")
    if above is True:
        number = max(number, (low or 0) + 1)
    elif isinstance(above, int | float) and not isinstance(above, bool):
        number = max(number, above + 1)
    if isinstance(high, int | float) and number > high:
        number = high
    if isinstance(multiple := schema.get("multipleOf"), int) and multiple > 0:
        number = -(-int(number) // multiple) * multiple
    return int(number) if is_whole else number
