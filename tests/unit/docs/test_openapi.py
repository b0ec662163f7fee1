import json
import re
from typing import Any

import pytest
import schemathesis
from docs.tools.field_schemas import FIELD_SCHEMAS
from docs.tools.openapi import build_openapi
from jsonschema import Draft202012Validator

from oku_coordinator.api.file_routes import build_run_file_routes, build_upload_routes
from oku_coordinator.api.routes import build_api
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.spec.fields import FIELD_BY_KEY

DOCUMENT: dict[str, Any] = json.loads(build_openapi())
EXAMPLES = [
    pytest.param(key, example, id=f"{key}: {example}")
    for key, schema in FIELD_SCHEMAS.items()
    for part in (schema, *schema.get("anyOf", ()))
    for example in part.get("examples", ())
]


def test_the_document_has_every_call_of_the_api_and_no_other() -> None:
    """The published API is the served one."""
    api = build_api(None, Metrics(), "token", Troubles())  # type: ignore[arg-type]
    api.add_routes(build_upload_routes(None))  # type: ignore[arg-type]
    api.add_routes(build_run_file_routes(None, None))  # type: ignore[arg-type]
    served = {
        (route.method.lower(), route.resource.canonical)
        for route in api.router.routes()
        if route.resource is not None and route.method not in {"HEAD", "*"}
    }
    actions = {(m, p) for m, p in served if "{action}" in p}
    served = (served - actions) | {
        (method, path.replace("{action}", action))
        for method, path in actions
        for action in ("pause", "resume", "cancel")
    }
    told = {
        (method, path)
        for path, item in DOCUMENT["paths"].items()
        for method in item.keys() & {"get", "post", "delete", "put", "patch"}
    }
    assert told == served


@pytest.mark.parametrize(("key", "example"), EXAMPLES)
def test_every_example_is_a_valid_value(key: str, example: str) -> None:
    """The parser of flags and files reads each example."""
    FIELD_BY_KEY[key].parse(example)


def test_the_document_has_every_key_of_a_spec() -> None:
    """Each key has what it may be."""
    assert FIELD_SCHEMAS.keys() == FIELD_BY_KEY.keys()


@pytest.mark.heavy
def test_the_document_is_valid() -> None:
    """It keeps to the rules of OpenAPI and JSON Schema, and no reference leads nowhere."""
    schemathesis.openapi.from_dict(DOCUMENT).validate()
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    names = re.findall(r'"#/components/schemas/(\w+)"', build_openapi())
    assert set(names) <= DOCUMENT["components"]["schemas"].keys()
