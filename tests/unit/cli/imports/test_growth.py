"""The time of an import grows in proportion to its input, and what it makes has a bound."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import thread_time
from typing import Any

import pytest

from oku_cli.imports.har.har_file import HarChoice, read_har
from oku_cli.imports.headers import SecretBox
from oku_cli.imports.openapi import openapi_references
from oku_cli.imports.openapi.openapi_document import read_openapi
from oku_cli.imports.spec_writer import write_spec

_SIZE = 1_000
_LEAST_S = 0.005
_MOST_GROWTH = 15


def _write_document(paths: Mapping[str, Any], **document: Any) -> bytes:
    return json.dumps({
        "openapi": "3.1.0", "servers": [{"url": "http://h"}], "paths": paths, **document,
    }).encode()  # fmt: skip


def _write_body(schema: Any, **document: Any) -> bytes:
    body = {"content": {"application/json": {"schema": schema}}}
    return _write_document({"/": {"post": {"requestBody": body}}}, **document)


def _write_required(count: int) -> bytes:
    required = [f"r{place}" for place in range(count)]
    properties: dict[str, Any] = {f"p{place}": {} for place in range(count)}
    return _write_body({"required": required, "properties": properties})


def _write_variables(count: int) -> bytes:
    variables = {f"v{place}": {"default": "x"} for place in range(count)}
    return _write_document(
        {"/": {"get": {}}}, servers=[{"url": f"http://h/{'{a}' * count}", "variables": variables}]
    )


def _write_directives(count: int) -> bytes:
    return "".join(f"%TAG !a{place}! b\n" for place in range(count)).encode() + b"---\nopenapi: 3.1.0\n"


def _import_har(content: bytes) -> None:
    write_spec(read_har(content, HarChoice()), SecretBox())


def _write_recording(*requests: Any) -> bytes:
    return json.dumps({"log": {"entries": [{"request": each} for each in requests]}}).encode()


def _write_secrets(count: int) -> bytes:
    query = "&".join(f"token={place}" for place in range(count))
    return _write_recording({"method": "GET", "url": f"http://h/?{query}", "headers": []})


def _write_headers(count: int) -> bytes:
    headers = [{"name": f"x{place}", "value": "v"} for place in range(count)]
    urls = ("http://h/", "http://h/a")
    return _write_recording(*({"method": "GET", "url": url, "headers": headers} for url in urls))


def _write_cookies(count: int) -> bytes:
    headers = [{"name": "cookie", "value": f"x{place}=v"} for place in range(count)]
    return _write_recording({"method": "GET", "url": "http://h/", "headers": headers})


def _write_cookie_schemes(count: int) -> bytes:
    names = [f"s{place}" for place in range(count)]
    schemes = {name: {"type": "apiKey", "in": "cookie", "name": name} for name in names}
    components = {"securitySchemes": schemes}
    return _write_document({"/": {"get": {}}}, components=components, security=[{key: [] for key in names}])


def _import_openapi(content: bytes) -> None:
    write_spec(read_openapi(content), SecretBox())


_GROWING: Mapping[str, tuple[Callable[[bytes], object], Callable[[int], bytes]]] = {
    "required properties": (read_openapi, _write_required),
    "variables of a server": (read_openapi, _write_variables),
    "directives": (read_openapi, _write_directives),
    "secrets": (_import_har, _write_secrets),
    "cookies": (_import_har, _write_cookies),
    "schemes of cookies": (_import_openapi, _write_cookie_schemes),
    "headers of all requests": (_import_har, _write_headers),
}


@pytest.mark.heavy
@pytest.mark.parametrize("what", _GROWING)
def test_ten_times_the_input_takes_less_than_fifteen_times_the_time(what: str) -> None:
    """The best of three turns, for others use the machine, too."""
    run, write = _GROWING[what]
    small, large = write(_SIZE), write(10 * _SIZE)
    turns = [(_time(run, small), _time(run, large)) for _ in range(3)]
    small_s, large_s = (min(times) for times in zip(*turns, strict=True))
    assert large_s / max(small_s, _LEAST_S) < _MOST_GROWTH


def _time(run: Callable[[bytes], object], content: bytes) -> float:
    begun = thread_time()
    with suppress(ValueError):
        run(content)
    return thread_time() - begun


_ALL_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_ITEM = {"$ref": "#/components/x/item"}


def _share_item(**operation: Any) -> bytes:
    """Many paths that are all the same, with many operations."""
    item = dict.fromkeys(_ALL_METHODS, operation)
    return _write_document({f"/{n}": _ITEM for n in range(1_000)}, components={"x": {"item": item}})


_MANY = 2_000
_SHARED: Mapping[str, bytes] = {
    "parameters": _share_item(parameters=[{"name": f"{place}"} for place in range(_MANY)]),
    "statuses": _share_item(responses={f"x{place}": {} for place in range(_MANY)}),
    "ways to prove who asks": _share_item(security=[{f"s{place}": [] for place in range(_MANY)}]),
    "types of a body": _share_item(
        requestBody={"content": {f"a/{n}": {"example": "x" if n == 0 else ""} for n in range(_MANY)}}
    ),
    "required properties": _share_item(
        requestBody={
            "content": {"application/json": {"schema": {"type": "object", "required": ["a"] * _MANY}}},
        }
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("what", _SHARED)
def test_what_many_operations_share_is_read_a_bounded_number_of_times(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """References multiply as aliases do."""
    monkeypatch.setattr(openapi_references, "MOST_ENTRIES", openapi_references.MOST_ENTRIES // 20)
    with pytest.raises(ValueError, match=r"references and examples stand for more than|more than 16 MiB"):
        read_openapi(_SHARED[what])


def test_large_examples_are_taken_as_long_as_there_is_room() -> None:
    """3,000 properties with the same text of 1 MB would make a body of 3 GB."""
    example = {"x": {"example": "x" * 1_000_000}}
    schema = {"properties": {f"p{place}": {"$ref": "#/components/x/x"} for place in range(3_000)}}
    (request,) = read_openapi(_write_body(schema, components={"x": example})).requests
    assert request.body is not None
    assert len(request.body) < 2_000_000
    assert [note for note in request.notes if "is too large; null stands for the rest" in note]
    # A list of large examples has a bound. So have the parameters of a query.
    listed = {"x": {"x": {"example": ["x" * 1_000] * 300}}}
    reference = {"$ref": "#/components/x/x"}
    items = {"type": "array", "minItems": 100, "items": reference}
    (request,) = read_openapi(_write_body(items, components=listed)).requests
    assert len(request.body or "") < 2_000_000
    parameters = [{"name": f"q{place}", "in": "query", "schema": reference} for place in range(500)]
    (request,) = read_openapi(
        _write_document({"/": {"parameters": parameters, "get": {}}}, components=listed)
    ).requests
    assert len(request.url) < 2_000_000
