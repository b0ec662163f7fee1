import json
from typing import Any

import pytest
import yaml

from oku_cli.imports.imported_spec import ImportedSpec
from oku_cli.imports.openapi.openapi_document import OpenApiChoice, read_openapi


def read(servers: list[Any], base_url: str | None = None, /, **item: Any) -> ImportedSpec:
    """Read a document with one operation."""
    content = {"openapi": "3.0.3", "servers": servers, "paths": {"/a": {"get": {}, **item}}}
    return read_openapi(json.dumps(content).encode(), OpenApiChoice(base_url=base_url))


def test_a_server_can_be_named_or_has_a_path() -> None:
    """YAML is read as well as JSON."""
    content = yaml.safe_dump({"openapi": "3.0.3", "paths": {"/a": {"get": {}}}}).encode()
    imported = read_openapi(content, OpenApiChoice(base_url="http://other/"))
    assert (imported.base, imported.requests[0].url) == ("http://other", "http://other/a")
    with pytest.raises(ValueError, match="its first server is missing; say where to send to by --base-url"):
        read_openapi(content)
    # The path of a server follows the base url.
    cases = {
        ("/api/v3", "http://h"): "http://h/api/v3",
        ("/api/v3/", "http://h/"): "http://h/api/v3",
        ("api", "http://h/gateway"): "http://h/gateway/api",
        ("./api", "http://h"): "http://h/api",
        ("/api/v3", "http://h/api/v3"): "http://h/api/v3",
        ("/", "http://h/b"): "http://h/b",
        ("/api", "http://api"): "http://api/api",
        ("http://x/v1", "http://h"): "http://h",
    }
    read_bases = {case: read([{"url": case[0]}], case[1]).base for case in cases}
    assert read_bases == cases
    note = "The path of the server in the document, /api/v3, follows the base URL."
    assert read([{"url": "/api/v3"}], "http://h").notes == [note]
    with pytest.raises(ValueError, match="its first server is /api; say where to send to by --base-url"):
        read([{"url": "/api"}])


def test_other_servers_are_named() -> None:
    """With the defaults of their variables; without a scheme, HTTPS is meant."""
    variables = {"port": {"default": "8443"}}
    servers = [{"url": "//h/v1"}, {"url": "https://x:{port}", "variables": variables}, {"url": "/local"}]
    imported = read(servers)
    assert imported.base == "https://h/v1"
    assert imported.notes == ["The document has other servers, for --base-url: https://x:8443, /local."]
    # A path and an operation may have servers of their own.
    first, own = [{"url": "http://h/v1"}], [{"url": "http://own/v2/"}]
    beside = "has its own server, /v3, which is taken to be beside the first one"
    instead = "has its own server, http://own/v2; the base URL replaces it"
    cases: list[tuple[ImportedSpec, str, list[str]]] = [
        (read(first, servers=own), "http://own/v2/a", []),
        (read(first, servers=own, get={"servers": [{"url": "http://op"}]}), "http://op/a", []),
        (read(first, get={"servers": [{"url": "/v3"}]}), "http://h/v3/a", [beside]),
        (read(first, "http://b", servers=own), "http://b/a", [instead]),
        (read(first, "http://b", servers=[{"url": "/v3"}]), "http://b/v3/a", []),
        (read([{"url": "/api"}], "http://b/x/api/", servers=[{"url": "/v3"}]), "http://b/x/v3/a", []),
        (read([{"url": "/api"}], "http://api", servers=[{"url": "/v3"}]), "http://api/v3/a", []),
    ]
    assert [(each.requests[0].url, each.requests[0].notes) for each, _, _ in cases] == [
        (url, notes) for _, url, notes in cases
    ]


def test_a_server_has_neither_query_nor_fragment() -> None:
    """Paths could not follow it; a base URL replaces one of the document."""
    bad, good = [{"url": "https://h/v1?x=1"}], [{"url": "https://h"}]
    cases: list[tuple[list[Any], str | None, list[Any]]] = [
        (bad, None, []), (good, "http://b#x", []), ([{"url": "/a?x"}], "http://b", []), (good, None, bad),
        (good, None, [{"url": "/v2?x"}]), (good, "http://b", [{"url": "/v2?x"}]),
    ]  # fmt: skip
    for servers, base_url, own in cases:
        with pytest.raises(ValueError, match="has a query or a fragment: leave it out"):
            read(servers, base_url, servers=own)
    assert read(bad, "http://b", servers=bad).requests[0].url == "http://b/a"
