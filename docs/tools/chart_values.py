"""Makes the chart's JSON Schema and the tables of its README from charts/oku/values.yaml and its comments.

The comment above a key says what the value means. A line `# @schema {…}` in it adds to the schema derived
from the value, or refers to one of `chart_definitions`. A comment `# -- TITLE` begins a section. Mappings are
closed: no other key is allowed. Helm drops a key that is null, so keys whose default is not empty are
required; null stands for any other default. Below `pods` each key may be null, which removes a setting.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from docs.tools.chart_definitions import DEFINITIONS

CHART = Path(__file__).parents[2] / "charts" / "oku"

_BEGIN, _END = "<!-- values:begin -->", "<!-- values:end -->"
_SECTION, _SCHEMA = "-- ", "@schema "
_TYPES: dict[type, str] = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True, kw_only=True)
class Value:
    """A key of the file.

    Args:
        path: the keys that lead to it.
        section: title of the section that it stands in.
        meaning: what the comment says.
        schema: what the comment adds to the schema.
        default: the value in the file.
        children: the keys below it; none if its own schema says what they may be.
    """

    path: tuple[str, ...]
    section: str
    meaning: str
    schema: dict[str, Any]
    default: Any
    children: Sequence["Value"] = field(default=())


def build_chart_files() -> dict[Path, str]:
    """The schema and the README of the chart, each with the text that it must contain."""
    values = read_values((CHART / "values.yaml").read_text())
    readme = CHART / "README.md"
    before, rest = readme.read_text().split(_BEGIN)
    after = rest.split(_END)[1]
    return {
        CHART / "values.schema.json": json.dumps(build_schema(values), indent=2, ensure_ascii=False) + "\n",
        readme: f"{before}{_BEGIN}\n{build_tables(values)}\n\n{_END}{after}",
    }


def read_values(text: str) -> Sequence[Value]:
    """The keys at the root; `ValueError` if one has no comment."""
    lines = text.splitlines()
    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return list(_read_mapping(root, (), lines))


def _read_mapping(node: yaml.MappingNode, path: tuple[str, ...], lines: Sequence[str]) -> Iterator[Value]:
    for key_node, value_node in node.value:
        here = (*path, key_node.value)
        line = key_node.start_mark.line
        meaning, schema = _read_comment(lines, line)
        if not meaning:
            raise ValueError(f"values.yaml:{line + 1}: {'.'.join(here)} has no comment")
        default = yaml.SafeLoader("").construct_document(value_node)
        is_open = "$ref" in schema or "additionalProperties" in schema
        children: Sequence[Value] = ()
        if isinstance(value_node, yaml.MappingNode) and not is_open:
            children = list(_read_mapping(value_node, here, lines))
        yield Value(
            path=here,
            section=_find_section(lines, line),
            meaning=meaning,
            schema=schema,
            default=default,
            children=children,
        )


def _read_comment(lines: Sequence[str], key_line: int) -> tuple[str, dict[str, Any]]:
    first = key_line
    while first and lines[first - 1].strip().startswith("#"):
        first -= 1
    comments = [line.strip()[1:].strip() for line in lines[first:key_line]]
    schema: dict[str, Any] = {}
    for comment in comments:
        if comment.startswith(_SCHEMA):
            schema |= json.loads(comment.removeprefix(_SCHEMA))
    meaning = " ".join(comment for comment in comments if not comment.startswith((_SCHEMA, _SECTION)))
    return meaning, schema


def _find_section(lines: Sequence[str], line: int) -> str:
    titles = (text[1:].strip() for text in reversed(lines[:line]) if text.startswith("# " + _SECTION))
    return next(titles, "").removeprefix(_SECTION)


def build_schema(values: Sequence[Value]) -> dict[str, Any]:
    """The JSON Schema of all values, in draft 7, which every version of Helm reads."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart oku",
        "type": "object",
        "definitions": dict(DEFINITIONS),
        "additionalProperties": False,
        "required": _list_required(values),
        "properties": {
            # Helm passes it to charts that are part of another one.
            "global": {"type": "object"},
            **{value.path[-1]: _build_property(value) for value in values},
        },
    }


def _list_required(values: Sequence[Value]) -> list[str]:
    return [value.path[-1] for value in values if value.default not in ("", [], {})]


def _build_property(value: Value) -> dict[str, Any]:
    if "$ref" in value.schema:
        return {"description": value.meaning, **value.schema}
    schema: dict[str, Any] = {"description": value.meaning, "type": _TYPES[type(value.default)]}
    is_of_pods = value.path[0] == "pods"
    if value.children:
        schema["additionalProperties"] = False
        required = [] if is_of_pods else _list_required(value.children)
        schema |= {"required": required} if required else {}
        schema["properties"] = {child.path[-1]: _build_property(child) for child in value.children}
    schema |= value.schema
    return _allow_null(schema) if is_of_pods or value.default in ("", [], {}) else schema


def _allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    allowed = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | {"type": [*types, "null"], **allowed}


def build_tables(values: Sequence[Value]) -> str:
    """The values as Markdown, one table for each section."""
    parts: list[str] = []
    for section in dict.fromkeys(value.section for value in values):
        rows = [row for value in values if value.section == section for row in _build_rows(value)]
        parts += [f"### {section}", "", "| value | default | meaning |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(parts).rstrip()


def _build_rows(value: Value) -> Iterator[str]:
    meaning = value.meaning.replace("|", "\\|")
    reference = value.schema.get("$ref", "")
    if reference.startswith("#/properties/"):
        keys = ".".join(reference.removeprefix("#/properties/").split("/properties/"))
        meaning = meaning if f"`{keys}`" in meaning else f"{meaning} Keys as in `{keys}`."
    default = "" if value.children else f"`{json.dumps(value.default, ensure_ascii=False)}`"
    yield f"| `{'.'.join(value.path)}` | {default} | {meaning} |"
    for child in value.children:
        yield from _build_rows(child)
