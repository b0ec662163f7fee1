"""JSON Schemas for kubeconform, made of the OpenAPI document of a cluster (`/openapi/v2`).

What kubeconform would fetch from the web is made of the same document, here of the tested cluster.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LOCATION = "{{.ResourceKind}}{{.KindSuffix}}.json"
"""The name of a file as kubeconform asks for it, to be appended to the folder in `-schema-location`."""

_PREFIX = "#/definitions/"
_LOOSE = {
    # Texts by the document, but numbers are read as well.
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}


def write_schemas(openapi: Mapping[str, Any], folder: Path) -> None:
    """A file for each kind, in which fields that it does not have are refused."""
    definitions = {name: _close(name, definition) for name, definition in openapi["definitions"].items()}
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", []):
            reached = {other: definitions[other] for other in _reach(name, definitions)}
            schema = {"$ref": _PREFIX + name, "definitions": reached}
            (folder / build_name(kind)).write_text(json.dumps(schema))


def build_name(kind: Mapping[str, str]) -> str:
    """The name of the file of a kind: with the first part of its group."""
    group = kind["group"].partition(".")[0]
    return "-".join(part for part in (kind["kind"].lower(), group, kind["version"]) if part) + ".json"


def _close(name: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    if name in _LOOSE:
        return dict(_LOOSE[name])
    has_any = "properties" not in definition or "additionalProperties" in definition
    return {**definition} if has_any else {**definition, "additionalProperties": False}


def _reach(name: str, definitions: Mapping[str, Any]) -> Iterator[str]:
    seen, waiting = {name}, [name]
    while waiting:
        here = waiting.pop()
        yield here
        found = set(re.findall(f'"{_PREFIX}([^"]+)"', json.dumps(definitions[here]))) - seen
        seen |= found
        waiting += found
