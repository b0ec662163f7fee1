from typing import Any

import pytest

from oku_cli.imports.openapi.schema_example import ExampleMaker


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
        ({"type": "string", "enum": [None, "a"]}, "a"),
        ({"type": "string", "default": "d", "example": "e"}, "e"),
        ({"examples": [3]}, 3),
        ({"const": 0}, 0),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [1, 1]),
        ({"type": "array", "maxItems": 0, "items": {"type": "integer"}}, []),
        ({"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, {"a": 1}),
        ({"properties": {"a": {"default": 4}, "b": {}}}, {"a": 4}),
        ({"oneOf": [{"type": "boolean"}, {}]}, True),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"oneOf": [{"type": "null"}]}, None),
        ({"oneOf": [{"required": ["b"]}, {}], "properties": {"a": {}, "b": {}}}, {"b": "string"}),
        ({"allOf": [{"type": "integer", "minimum": 3}]}, 3),
        ({"allOf": [{"items": {"type": "integer"}}], "description": "x"}, [1]),
        (
            {"allOf": [{"properties": {"a": {}, "b": {"type": "integer"}}}, {"required": ["b"]}]},
            {"b": 1},
        ),
        (
            {
                "allOf": [
                    {"required": ["kind"], "properties": {"kind": {}}},
                    {"properties": {"kind": {"enum": ["x"]}}},
                ]
            },
            {"kind": "x"},
        ),
        (
            {"required": ["a", "b"], "properties": {"a": {"readOnly": True}, "b": {"readOnly": False}}},
            {"b": "string"},
        ),
        (
            {
                "example": {"a": 1, "b": [{"c": 2, "d": 3}]},
                "properties": {
                    "a": {"readOnly": True},
                    "b": {"items": {"properties": {"c": {"readOnly": True}}}},
                },
            },
            {"b": [{"d": 3}]},
        ),
        ({"example": {"a": 1, "b": 2}, "allOf": [{"properties": {"a": {"readOnly": True}}}]}, {"b": 2}),
        ({"allOf": [{"example": {"a": 1, "b": 2}, "properties": {"a": {"readOnly": True}}}]}, {"b": 2}),
        (
            {"allOf": [{"properties": {"a": {"readOnly": True}}}, {"properties": {"a": {"example": 1}}}]},
            {},
        ),
        ({"example": {"a": 1}, "anyOf": [{"properties": {"a": {"readOnly": True}}}, {"type": "null"}]}, {}),
        ({"example": 12, "oneOf": [{"type": "string"}, {"type": "integer"}]}, 12),
        ({"type": "string", "example": 12}, "12"),
        ({"allOf": [{"type": "string"}, {"example": 12}]}, "12"),
        ({"type": ["string", "integer"], "example": 12}, 12),
        ({"type": "string", "example": False}, "false"),
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


SCHEMAS: dict[str, Any] = {
    "Cat": {"type": "object", "required": ["lives"], "properties": {"lives": {"type": "integer"}}},
    "Id": {"type": "integer"},
    "Node": {"required": ["kids"], "properties": {"kids": {"items": {"$ref": "Node"}}}},
    "Loop": {"allOf": [{"$ref": "Loop"}, {"properties": {"a": {"example": 1}}}]},
    "Ring": {"allOf": [{"$ref": "Ring"}] * 9},
}


def test_references() -> None:
    """What stands beside one counts, too; the name of a schema tells a service which one was chosen."""

    def resolve(value: Any) -> Any:
        return SCHEMAS[value["$ref"]] if "$ref" in value else value

    cases: list[tuple[Any, Any]] = [
        ({"$ref": "Id", "example": 7}, 7),
        (
            {
                "required": ["a", "b"],
                "properties": {"a": {"$ref": "Id", "readOnly": True}, "b": {"$ref": "Id"}},
            },
            {"b": 1},
        ),
        (
            {"oneOf": [{"$ref": "Cat"}], "discriminator": {"propertyName": "kind"}},
            {"lives": 1, "kind": "Cat"},
        ),
        (
            {
                "oneOf": [{"$ref": "Cat"}],
                "discriminator": {"propertyName": "kind", "mapping": {"a": "x", "cat": "Cat"}},
            },
            {"lives": 1, "kind": "cat"},
        ),
        ({"$ref": "Node"}, {"kids": []}),
        ({"$ref": "Loop"}, {"a": 1}),
        ({"$ref": "Ring"}, None),
    ]
    assert [ExampleMaker(resolve).make(schema, "x") for schema, _ in cases] == [value for _, value in cases]


def test_examples_that_are_missing_or_made_up_are_noted() -> None:
    """The first example counts; a pattern cannot be filled, and a schema that contains itself ends."""
    maker = ExampleMaker(lambda value: SCHEMAS["Id"] if "$ref" in value else value)
    assert maker.find({"examples": {"a": {"value": 3}, "b": {"value": 4}}}) == 3
    assert maker.find({"examples": {"a": {"externalValue": "http://h/a"}}, "enum": [5]}) == 5
    assert maker.notes == ["its example a is not in the document: http://h/a"]
    maker = ExampleMaker(lambda value: value)
    schema: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {}}
    schema["properties"]["a"] = schema
    maker.make({"type": "string", "pattern": "^a$"}, "code")
    assert maker.make(schema, "")["a"]["a"] is not None
    assert maker.notes[0] == "code is made up, and may not match ^a$"
    assert maker.notes[1].endswith("is nested too deep; null stands for the rest")
    maker.notes.clear()
    maker.make({"type": "integer", "minimum": 6, "maximum": 7, "multipleOf": 5}, "n")
    maker.make({"type": "array", "minItems": 2, "uniqueItems": True, "items": {"type": "null"}}, "list")
    assert maker.notes == [
        "n is 1, because no number that fits its schema was found",
        "list has equal items, though its schema wants different ones",
    ]
