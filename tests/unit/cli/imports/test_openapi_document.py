import json
from typing import Any

import pytest
import yaml

from oku_cli.imports.imported_spec import ImportedRequest
from oku_cli.imports.openapi_document import read_openapi

SERVERS = [{"url": "http://{host}/v1/", "variables": {"host": {"default": "h"}}}]


def read(paths: dict[str, Any], **document: Any) -> list[ImportedRequest]:
    """Read a document with these paths."""
    content = {"openapi": "3.1.0", "servers": SERVERS, "paths": paths, **document}
    return list(read_openapi(json.dumps(content).encode()).requests)


def test_each_operation_is_a_request() -> None:
    """Its name is its id, and the first status of success is expected."""
    responses: dict[str, Any] = {"default": {}, "201": {}, "200": {}}
    item = {"get": {"operationId": "list"}, "post": {"responses": responses}, "summary": "no operation"}
    assert [(each.method, each.url, each.name, each.statuses) for each in read({"/a": item})] == [
        ("GET", "http://h/v1/a", "list", []),
        ("POST", "http://h/v1/a", "POST /a", [201]),
    ]


def test_parameters_have_values() -> None:
    """Those that are required, and those with an example; an operation's own comes before its path's."""
    shared = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
        {"name": "q", "in": "query", "required": True, "schema": {"type": "string"}},
    ]
    own = [
        {"name": "q", "in": "query", "example": "a b"},
        {"name": "left", "in": "query", "schema": {"type": "string"}},
        {"name": "X-A", "in": "header", "schema": {"default": [1, 2]}},
        {"name": "c", "in": "cookie", "required": True, "content": {"text/plain": {"schema": {"const": 5}}}},
    ]
    (request,) = read({"/a/{id}": {"parameters": shared, "get": {"parameters": own}}})
    assert request.url == "http://h/v1/a/1?q=a+b"
    assert request.headers == [("X-A", "1,2"), ("Cookie", "c=5")]
    assert request.notes == ["id is made up: put one that exists, or {i}, in its place"]


def test_bodies_are_made_of_their_schemas() -> None:
    """JSON, forms, and whatever has an example; the rest is noted."""
    schema = {"required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"example": "x y"}}}
    components = {"schemas": {"A/B": schema}}
    reference = {"schema": {"$ref": "#/components/schemas/A~1B"}}
    kinds: list[dict[str, Any]] = [
        {"application/json": reference},
        {"application/merge-patch+json": {"example": [1]}},
        {"application/x-www-form-urlencoded": reference},
        {"text/plain": {"example": "hello"}},
        {"multipart/form-data": {}},
    ]
    paths = {f"/{place}": {"post": {"requestBody": {"content": kind}}} for place, kind in enumerate(kinds)}
    requests = read(paths, components=components)
    assert [each.body for each in requests] == ['{"a": 1, "b": "x y"}', "[1]", "a=1&b=x+y", "hello", None]
    assert requests[0].headers == [("Content-Type", "application/json")]
    assert requests[4].notes == ["has no body: none can be made of the type multipart/form-data"]


@pytest.mark.parametrize(
    ("parameter", "value", "query"),
    [
        ({}, ["x y", "b"], "tags=x+y&tags=b"),
        ({"explode": False}, ["a", "b"], "tags=a%2Cb"),
        ({"style": "pipeDelimited"}, ["a", "b"], "tags=a%7Cb"),
        ({"style": "spaceDelimited", "explode": True}, ["a", "b"], "tags=a&tags=b"),
        ({}, {"r": 1, "g": True}, "r=1&g=true"),
        ({"explode": False}, {"r": 1, "g": 2}, "tags=r%2C1%2Cg%2C2"),
        ({"style": "deepObject"}, {"r": 1, "g": 2}, "tags%5Br%5D=1&tags%5Bg%5D=2"),
        ({"explode": False}, "a", "tags=a"),
    ],
)
def test_lists_and_objects_stand_in_a_query_as_their_style_says(
    parameter: dict[str, Any], value: Any, query: str
) -> None:
    """Unless something is said, each item of a list is a pair of its own."""
    written = {"name": "tags", "in": "query", "example": value, **parameter}
    assert read({"/a": {"get": {"parameters": [written]}}})[0].url == f"http://h/v1/a?{query}"


def test_each_item_of_a_list_is_a_field_of_a_form() -> None:
    """So forms send lists, unless something else is said."""
    content = {"application/x-www-form-urlencoded": {"example": {"a": [1, 2], "b": "c"}}}
    assert read({"/a": {"post": {"requestBody": {"content": content}}}})[0].body == "a=1&a=2&b=c"


@pytest.mark.parametrize(
    ("scheme", "headers", "query"),
    [
        ({"type": "http", "scheme": "bearer"}, [("Authorization", "Bearer {env:MY_KEY}")], ""),
        ({"type": "http", "scheme": "basic"}, [("Authorization", "Basic {env:MY_KEY}")], ""),
        ({"type": "oauth2"}, [("Authorization", "Bearer {env:MY_KEY}")], ""),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, [("X-Key", "{env:MY_KEY}")], ""),
        ({"type": "apiKey", "in": "query", "name": "key"}, [], "?key={env:MY_KEY}"),
        ({"type": "apiKey", "in": "cookie", "name": "s"}, [("Cookie", "s={env:MY_KEY}")], ""),
    ],
)
def test_credentials_are_placeholders(scheme: dict[str, Any], headers: list[Any], query: str) -> None:
    """An operation that wants none has none."""
    paths: dict[str, Any] = {"/a": {"get": {}, "post": {"security": []}}}
    first, second = read(paths, security=[{"my-key": []}], components={"securitySchemes": {"my-key": scheme}})
    assert (first.headers, first.url) == (headers, f"http://h/v1/a{query}")
    assert (second.headers, second.url) == ([], "http://h/v1/a")


def test_a_server_can_be_named() -> None:
    """YAML is read as well as JSON."""
    content = yaml.safe_dump({"openapi": "3.0.3", "paths": {"/a": {"get": {}}}}).encode()
    imported = read_openapi(content, "http://other/")
    assert (imported.base, imported.requests[0].url) == ("http://other", "http://other/a")
    with pytest.raises(ValueError, match="its first server is missing; say where to send to by --base-url"):
        read_openapi(content)


def test_a_date_without_quotes_is_text() -> None:
    """YAML would make it a date, which neither JSON nor a URL has."""
    content = b"""
openapi: 3.0.0
servers: [{url: http://h}]
paths:
  /a:
    post:
      parameters: [{name: from, in: query, example: 2026-01-01}]
      requestBody: {content: {application/json: {example: {day: 2026-01-01}}}}
"""
    (request,) = read_openapi(content).requests
    assert (request.url, request.body) == ("http://h/a?from=2026-01-01", '{"day": "2026-01-01"}')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "line 2: is not YAML: "),
        (b"a: b", "it is not an OpenAPI 3 document"),
        (b"swagger: '2.0'", "it is not an OpenAPI 3 document but Swagger 2.0"),
        (b"openapi: 4.0.0", "openapi: 4.0.0 is not 3.0 or 3.1"),
        (b"openapi: 3.0.0\nservers: [{url: 'http://h'}]", "it has no operation"),
        (b"openapi: 3.0.0\nservers: [{$ref: 'a.yaml'}]", "a.yaml is in another file"),
        (b"openapi: 3.0.0\nservers: [{$ref: '#/servers/0'}]", "its references go round in a circle"),
        (b"openapi: 3.0.0\nservers: [{url: 'http://h'}]\npaths: [/a]", "a part of it is of another kind"),
    ],
)
def test_what_cannot_be_read_is_said(content: bytes, message: str) -> None:
    """In one line."""
    with pytest.raises(ValueError, match=message):
        read_openapi(content)
