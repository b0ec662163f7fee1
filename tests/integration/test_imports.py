"""Specs that are imported are run: against a delay server, which takes any path and method."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.kit.runs.local_run import run_oku
from tests.kit.servers.delay_server import DelayServer

HAR = {
    "log": {
        "entries": [
            {
                "request": {"method": "GET", "url": "URL/items/1?a={b}", "headers": []},
                "response": {"status": 200},
            },
            {
                "request": {"method": "GET", "url": "URL/items/1?a={b}", "headers": []},
                "response": {"status": 200},
            },
            {
                "request": {
                    "method": "POST",
                    "url": "URL/cart",
                    "headers": [{"name": "Content-Type", "value": "application/json"}],
                    "postData": {"text": '{"sku": "1"}'},
                },
                "response": {"status": 200},
            },
        ]
    }
}
OPENAPI = {
    "openapi": "3.0.3",
    "servers": [{"url": "URL"}],
    "paths": {
        "/items/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}]}},
        "/orders": {
            "post": {"requestBody": {"content": {"application/json": {"schema": {"example": {"a": 1}}}}}}
        },
    },
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DelayServer]:
    """A delay server that ends with the test."""
    folder = tmp_path / "server"
    folder.mkdir()
    server = DelayServer(folder, "--delay", "0s")
    yield server
    server.end()


def run_imported(folder: Path, *arguments: str, given: str = "") -> dict[str, object]:
    """Import a spec, run it, and return its summary."""
    imported = run_oku("import", *arguments, "-o", "spec.yaml", cwd=folder, given=given)
    assert imported.returncode == 0, imported.stderr
    done = run_oku("run", "spec.yaml", "-n", "60", "-w", "1", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    summary: dict[str, object] = json.loads(done.stdout)
    return summary


def test_a_curl_command_runs(server: DelayServer, tmp_path: Path) -> None:
    """As it is pasted."""
    command = f"curl '{server.url}/cart' \\\n -H 'accept: */*' --data-raw $'{{\"it\\'s\": 1}}' --compressed"
    summary = run_imported(tmp_path, "curl", "-", given=command)
    assert summary["statuses"] == {"200": 60}


@pytest.mark.parametrize(
    ("kind", "document", "names"),
    [
        ("har", HAR, {"GET /items/1": 40, "POST /cart": 20}),
        ("openapi", OPENAPI, {"GET /items/1": 30, "POST /orders": 30}),
    ],
    ids=["har", "openapi"],
)
def test_a_document_runs(
    server: DelayServer, tmp_path: Path, kind: str, document: object, names: dict[str, int]
) -> None:
    """Each of its requests is a target, with its share."""
    (tmp_path / "document.json").write_text(json.dumps(document).replace("URL", server.url))
    summary = run_imported(tmp_path, kind, "document.json")
    targets = summary["targets"]
    assert isinstance(targets, Sequence)
    assert {each["name"]: each["outcomes"]["ok"] for each in targets} == names
