import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest

from oku_cli.imports.imported_spec import ImportedRequest, NeededCredential
from oku_cli.imports.openapi.openapi_document import OpenApiChoice, read_openapi

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
        {"name": "d", "in": "cookie", "example": ["x", "y"]},
        {"name": "Accept", "in": "header", "example": "text/x"},
    ]
    (request,) = read({"/a/{id}": {"parameters": shared, "get": {"parameters": own}}})
    assert request.url == "http://h/v1/a/1?q=a%20b"
    assert request.headers == [("X-A", "1,2"), ("Cookie", "c=5; d=x; d=y")]
    assert request.notes == ["id is made up: put one that exists, or {i}, in its place"]


def test_bodies_are_made_of_their_schemas() -> None:
    """JSON, forms, and whatever has an example; the rest is noted."""
    schema = {"required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"example": "x y"}}}
    components = {"schemas": {"A/B": schema}, "examples": {"one": {"value": {"sku": "shirt"}}}}
    reference = {"schema": {"$ref": "#/components/schemas/A~1B"}}
    kinds: list[dict[str, Any]] = [
        {"application/json": reference},
        {"application/merge-patch+json": {"example": [1]}},
        {"application/x-www-form-urlencoded": reference},
        {"text/plain": {"example": "hello"}},
        {"*/*": {"examples": {"one": {"$ref": "#/components/examples/one"}}}},
        {"multipart/form-data": {}},
    ]
    paths = {f"/{place}": {"post": {"requestBody": {"content": kind}}} for place, kind in enumerate(kinds)}
    requests = read(paths, components=components)
    assert [each.body for each in requests] == [
        '{"a": 1, "b": "x y"}',
        "[1]",
        "a=1&b=x+y",
        "hello",
        '{"sku": "shirt"}',
        None,
    ]
    assert requests[0].headers == [("Content-Type", "application/json")]
    assert requests[4].headers == [("Content-Type", "application/json")]
    assert requests[5].notes == ["has no body: none can be made of the type multipart/form-data"]


def test_a_parameter_may_be_a_document() -> None:
    """One with `content`: JSON is one value, a text in quotes."""
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "example": 7}}}
    given: list[dict[str, Any]] = [
        {"schema": schema},
        {"schema": {}, "example": "x y"},
        {"example": [1, "a"]},
    ]
    parameters = [
        {"name": f"p{place}", "in": "query", "required": True, "content": {"application/json": media}}
        for place, media in enumerate(given)
    ]
    (request,) = read({"/a": {"get": {"parameters": parameters}}})
    assert unquote(request.url) == 'http://h/v1/a?p0={"a":7}&p1="x y"&p2=[1,"a"]'


def test_an_encoding_says_how_a_field_of_a_form_is_written() -> None:
    """Else each item of a list is a field; a form without fields is sent only if there must be one."""
    content = {"application/x-www-form-urlencoded": {"example": {"a": [1, 2], "b": "c"}}}
    assert read({"/a": {"post": {"requestBody": {"content": content}}}})[0].body == "a=1&a=2&b=c"
    fields = {"metadata": {"order": "6 7"}, "tags": ["a", "b"], "plain": {"x": 1}, "path": "a/b"}
    encoding = {
        "metadata": {"style": "deepObject", "explode": True},
        "tags": {"explode": False},
        "plain": {"contentType": "application/json"},
        "path": {"allowReserved": True},
    }
    form = {"example": fields, "encoding": encoding}
    empty = {"schema": {"type": "object", "properties": {}}}
    kind = "application/x-www-form-urlencoded"
    bodies = [
        {"content": {kind: form}},
        {"content": {kind: empty}},
        {"content": {kind: empty}, "required": True},
    ]
    paths = {f"/{place}": {"get": {"requestBody": body}} for place, body in enumerate(bodies)}
    first, second, third = read(paths)
    assert first.body == "metadata%5Border%5D=6%207&tags=a,b&plain=%7B%22x%22%3A1%7D&path=a/b"
    assert (second.body, second.headers) == (None, [])
    assert (third.body, third.headers) == ("", [("Content-Type", kind)])


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


def test_credentials_that_cannot_be_sent_are_named() -> None:
    """Rather than that another kind is sent; the variable of basic credentials holds base64."""
    for scheme, note in [
        ({"type": "mutualTLS"}, "needs a client certificate (my-key): give --cert and --key"),
        (
            {"type": "http", "scheme": "digest"},
            "needs the credentials my-key (digest), which Oku cannot send",
        ),
        ({}, "needs the credentials my-key (unknown), which Oku cannot send"),
    ]:
        schemes = {"securitySchemes": {"my-key": scheme}}
        (request,) = read({"/a": {"get": {}}}, security=[{"my-key": []}], components=schemes)
        assert (request.credentials, request.notes) == ([], [note])
    schemes = {"securitySchemes": {"b": {"type": "http", "scheme": "basic"}}}
    (request,) = read({"/a": {"get": {}}}, security=[{"b": []}], components=schemes)
    assert request.notes == ["needs the credentials b; their variable holds base64 of user:password"]


def test_deletes_are_left_out_unless_they_are_asked_for() -> None:
    """A load that deletes is seldom meant; the names are said."""
    document = {
        "openapi": "3.1.0",
        "servers": SERVERS,
        "paths": {f"/{n}": {"get": {}, "delete": {}} for n in range(7)},
    }
    content = json.dumps(document).encode()
    imported = read_openapi(content)
    assert {each.method for each in imported.requests} == {"GET"}
    named = ", ".join(f"DELETE /{n}" for n in range(5))
    assert imported.notes == [f"Left out: 7 DELETE (--deletes takes them): {named} and 2 more."]
    imported = read_openapi(content, OpenApiChoice(deletes=True))
    assert ([each.method for each in imported.requests], imported.notes) == (["GET", "DELETE"] * 7, [])
    with pytest.raises(ValueError, match="it has only DELETE operations; --deletes includes them"):
        read({"/a": {"delete": {}}})


def test_scalars_are_those_of_yaml_1_2() -> None:
    """What has no quotes is what stands there where a schema wants text; a number elsewhere."""
    texts = {"at": "22:30", "zip": "01234", "version": "1.10", "big": "1e3", "on": "x", "flag": "true"}
    parameters = "".join(
        f"\n    - {{name: {name}, in: query, schema: {{type: string}}, example: {text}}}"
        for name, text in texts.items()
    )
    rest = """
    requestBody:
      content:
        application/json:
          schema:
            properties: {v: {type: string}, n: {type: number}, l: {items: {type: string}}}
          example: {v: 1.10, n: 1.10, l: [1, no]}
"""
    path = "paths:\n  /a/{c}:\n   post:\n    parameters:\n"
    first = "    - {name: c, in: path, schema: {type: string, enum: [NO, SE]}}"
    content = HEAD + f"{path}{first}{parameters}{rest}".encode()
    (request,) = read_openapi(content).requests
    assert request.url == "http://h/a/NO?at=22:30&zip=01234&version=1.10&big=1e3&on=x&flag=true"
    assert request.body == '{"v": "1.10", "n": 1.1, "l": ["1", "no"]}'


def test_what_is_not_in_the_document_is_named() -> None:
    """A value is made up, as if nothing were known of it."""
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/None"}}}}
    document = {"openapi": "3.1.0", "servers": SERVERS, "paths": {"/a": {"post": {"requestBody": body}}}}
    imported = read_openapi(json.dumps(document).encode())
    assert imported.notes == ["Not in the document, but referred to: #/components/schemas/None."]
    # A path may have variables that are no parameters. They are sent as they are, and named.
    (request,) = read({"/a/{b}": {"get": {}}})
    assert request.url == "http://h/v1/a/{b}"
    assert request.notes == ["/a/{b} has a variable that is no parameter: put a value in its place"]


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


def test_yaml_is_read_as_its_author_means_it() -> None:
    """An alias and a merge stand for what operations share, and a date without quotes is text."""
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
