from typing import Any

import pytest

from oku_cli.imports.schema_example import ExampleMaker


def make(schema: Any) -> Any:
    """Make a value for a schema without references."""
    return ExampleMaker(lambda value: value if isinstance(value, dict) else {}).make(schema, "x")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "integer", "exclusiveMinimum": 7}, 8),
        ({"type": "integer", "minimum": 7, "exclusiveMinimum": True}, 8),
        ({"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
        ({"type": "number", "minimum": 1.5}, 1.5),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": ["null", "string"]}, "string"),
        ({"type": "string", "minLength": 8}, "stringxx"),
        ({"type": "string", "maxLength": 3}, "str"),
        ({"type": "string", "format": "uuid"}, "00000000-0000-4000-8000-000000000000"),
        ({"type": "string", "enum": ["a", "b"]}, "a"),
        ({"type": "string", "default": "d", "example": "e"}, "e"),
        ({"examples": [3]}, 3),
        ({"const": 0}, 0),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [1, 1]),
        ({"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, {"a": 1}),
        ({"properties": {"a": {"default": 4}, "b": {}}}, {"a": 4}),
        ({"oneOf": [{"type": "boolean"}, {}]}, True),
        (
            {"allOf": [{"properties": {"a": {"example": 1}}}, {"properties": {"b": {"example": 2}}}]},
            {"a": 1, "b": 2},
        ),
        ({}, "string"),
    ],
)
def test_a_value_fits_its_schema(schema: dict[str, Any], value: Any) -> None:
    """Examples first, then what is least."""
    assert make(schema) == value


def test_what_is_made_up_is_noted() -> None:
    """A pattern cannot be filled, a schema that contains itself ends."""
    maker = ExampleMaker(lambda value: value)
    schema: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {}}
    schema["properties"]["a"] = schema
    maker.make({"type": "string", "pattern": "^a$"}, "code")
    assert maker.make(schema, "")["a"]["a"] is not None
    assert maker.notes[0] == "code is made up, and may not match ^a$"
    assert maker.notes[1].endswith("contains itself; null stands for the rest")
