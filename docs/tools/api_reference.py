"""Builds the reference of the API from its OpenAPI document."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docs.tools.generated_parts import build_table

Json = Mapping[str, Any]
_METHODS = ("get", "post", "delete")


def build_calls(document: Json) -> str:
    """A row for each call: what it does, what it takes and what it answers."""
    rows = (
        [f"`{method.upper()} {path}`", operation["summary"], _join(_list_input(operation)), _join(answers)]
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in _METHODS
        for answers in [[_describe_answer(*answer) for answer in operation["responses"].items()]]
    )
    return build_table(["call", "does", "takes", "answers"], rows)


def build_objects(document: Json) -> str:
    """A table for each object that is described nowhere else."""
    schemas = document["components"]["schemas"]
    return "\n\n".join(f"### {name}\n\n{_build_object(schemas[name])}" for name in ("Run", "Error"))


def _list_input(operation: Json) -> Iterator[str]:
    for parameter in operation.get("parameters", ()):
        description = parameter["schema"].get("description", "")
        yield f"`{parameter['name']}`: {description}" if description else f"`{parameter['name']}`"
    if body := operation.get("requestBody"):
        [content] = body["content"].values()
        yield f"a {_name_schema(content['schema'])}"


def _describe_answer(status: str, answer: Json) -> str:
    if status >= "400":
        return status
    kinds = answer.get("content", {}).items()
    names = [_name_schema(content.get("schema", {})) or kind for kind, content in kinds]
    return f"{status} {' or '.join(names)}".strip()


def _name_schema(schema: Json) -> str:
    if "items" in schema:
        return f"list of {_name_schema(schema['items'])}"
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _build_object(schema: Json) -> str:
    rows = (
        [f"`{name}`", _describe_type(field), field.get("description", "")]
        for name, field in schema["properties"].items()
    )
    return build_table(["field", "type", "meaning"], rows)


def _describe_type(schema: Json) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join(kinds)


def _join(parts: Sequence[str] | Iterator[str]) -> str:
    return ", ".join(parts)
