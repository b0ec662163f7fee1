import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from oku_cli.imports.imported_spec import ImportedRequest, NeededCredential
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
    ("scheme", "credential"),
    [
        ({"type": "http", "scheme": "bearer"}, NeededCredential("Authorization", "Bearer ", "my-key")),
        ({"type": "http", "scheme": "basic"}, NeededCredential("Authorization", "Basic ", "my-key")),
        ({"type": "oauth2"}, NeededCredential("Authorization", "Bearer ", "my-key")),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, NeededCredential("X-Key", "", "my-key")),
        ({"type": "apiKey", "in": "query", "name": "key"}, NeededCredential("", "key", "my-key")),
        ({"type": "apiKey", "in": "cookie", "name": "s"}, NeededCredential("Cookie", "s=", "my-key")),
    ],
)
def test_credentials_are_left_to_a_person(scheme: dict[str, Any], credential: NeededCredential) -> None:
    """An operation that wants none has none."""
    paths: dict[str, Any] = {"/a": {"get": {}, "post": {"security": []}}}
    first, second = read(paths, security=[{"my-key": []}], components={"securitySchemes": {"my-key": scheme}})
    assert (first.headers, first.url, first.credentials) == ([], "http://h/v1/a", [credential])
    assert (second.headers, second.url, second.credentials) == ([], "http://h/v1/a", [])


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


HEAD = b"openapi: 3.0.0\nservers: [{url: http://h}]\n"
BOMB = b"".join(
    b"%b: &%b [%b]\n" % (new, new, b", ".join([b"*" + old] * 9))
    for old, new in zip([b"a%d" % n for n in range(9)], [b"a%d" % n for n in range(1, 10)], strict=True)
)


def write_levels(levels: int, item: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Schemas that stand for many of the next one each."""
    schemas = {f"S{level}": item(f"#/components/schemas/S{level + 1}") for level in range(levels)}
    return {"schemas": schemas | {f"S{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEAD + b"x-a0: &a0 [x]\n" + BOMB, "line 9: .a5: aliases stand for more than 1,000,000 values"),
        (HEAD + b"x: " + b"[" * 900, "line 3: is nested more than 100 deep"),
        (HEAD + b"x: " + b"[" * 80_000, "line 3: is n"),
        (b'{"openapi": "3.0.0", "x": ' + b"[" * 80_000, "is nested too deep"),
        (b'{"openapi": "3.0.0", "openapi": "3.1.0"}', "openapi: is given twice"),
        (HEAD + b"paths: {/a: {get: {}}}\npaths: {}", "line 4: paths: is given twice"),
        (HEAD + b"x: " + b"9" * 5000, "line 3: a number has 5000 digits; at most 400 are allowed"),
        (HEAD + b"servers: !!python/name:os.system x", "line 3: !!python/name:os.system: only tags of JSON"),
        (HEAD[:15] + b"servers: [{url: '" + b"{a}" * 20_000 + b"', variables: {a: {default: " + b"x" * 999
         + b"}}}]", "a URL with its a is longer than 64 KiB"),
        (HEAD + b"paths:\n" + b"".join(b"  /%d: {get: {}}\n" % n for n in range(10_001)),
         "it has more than 10,000 operations"),
        (HEAD + b"x: &x " + b"y" * 40_000 + b"\npaths:\n" + b"".join(
            b"  /%d: {post: {requestBody: {content: {application/json: {example: *x}}}}}\n" % n
            for n in range(500)), "its requests take more than 16 MiB, examples included"),
        (HEAD + b"paths: {/a: {get: {parameters: [{$ref: '#/x/\xc2\xb2'}]}}}\nx: [1]\n", ""),
    ],
    ids=range(12),
)  # fmt: skip
def test_a_document_that_grows_is_refused_at_once(content: bytes, message: str) -> None:
    """In one line, and within seconds."""
    began = time.process_time()
    if message:
        with pytest.raises(ValueError, match=f"^{message}"):
            read_openapi(content)
    else:
        read_openapi(content)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "item",
    [
        lambda to: {"required": [*"abcdefgh"], "properties": {name: {"$ref": to} for name in "abcdefgh"}},
        lambda to: {"allOf": [{"properties": {"a": {"$ref": to}}, "required": ["a"]}] * 9},
        lambda to: {"type": "array", "minItems": 100, "items": {"$ref": to}},
    ],
    ids=["objects", "parts", "lists"],
)
def test_an_example_of_schemas_that_multiply_is_cut(item: Callable[[str], dict[str, Any]]) -> None:
    """Eight levels of nine would be 43 million values; the note says where null stands for them."""
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}
    (request,) = read({"/a": {"post": {"requestBody": body}}}, components=write_levels(8, item))
    assert len(request.body or "") < 20_000


def test_an_alias_and_a_merge_are_understood() -> None:
    """A document may say what its operations share but once."""
    content = (
        HEAD
        + b"""
x-both: &both {responses: {201: {description: made}}}
paths:
  /a: {post: {<<: *both}}
  /b: {put: &put {<<: *both, operationId: b}}
"""
    )
    first, second = read_openapi(content).requests
    assert (first.statuses, second.statuses, second.name) == ([201], [201], "b")
