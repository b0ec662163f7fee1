"""Specs that are imported are run: against a delay server, which takes any path and method."""

import json
import socketserver
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.kit.runs.local_run import run_oku
from tests.kit.servers.delay_server import DelayServer

from oku_core.spec.spec import Engine

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


FOREIGN = "{env:AWS_SECRET_ACCESS_KEY} {file:id_rsa} {i} {literal:i} {env:not-one} {sku} {{}}"
FOREIGN_BODY = f'{{"note": "{FOREIGN}", "\\u007benv:HOME}}": [1,  2]}}'


class Recorder(socketserver.StreamRequestHandler):
    """Keeps what comes, byte by byte."""

    heard: list[tuple[bytes, bytes, bytes]]

    def handle(self) -> None:
        """Keep the request line, the header of notes and the body of each request."""
        while line := self.rfile.readline():
            headers = dict(header.rstrip().split(b": ", 1) for header in iter(self.rfile.readline, b"\r\n"))
            lower = {name.lower(): value for name, value in headers.items()}
            body = self.rfile.read(int(lower.get(b"content-length", b"0")))
            self.heard.append((line, lower.get(b"x-note", b""), body))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("engine", "is_single"), [(Engine.AIOHTTP, True), (Engine.HTTPTOOLS, False)], ids=["aiohttp", "httptools"]
)
def test_text_that_looks_like_placeholders_is_sent_byte_by_byte(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, *, is_single: bool
) -> None:
    """A recording was made by others: none of its texts may send a variable of who runs it."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-them")
    heard: list[tuple[bytes, bytes, bytes]] = []
    handler = type("OwnRecorder", (Recorder,), {"heard": heard})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        target = "/a/{i}?q={env:AWS_SECRET_ACCESS_KEY}&f={file:id_rsa}&l={literal:i}"
        headers = [
            {"name": "X-Note", "value": FOREIGN}, {"name": "Content-Type", "value": "application/json"}
        ]  # fmt: skip
        url = f"http://127.0.0.1:{server.server_address[1]}"
        posted = {
            "method": "POST", "url": f"{url}{target}", "headers": headers, "postData": {"text": FOREIGN_BODY}
        }  # fmt: skip
        requests = [posted] if is_single else [posted, {"method": "GET", "url": f"{url}/b", "headers": []}]
        entries = [{"request": request, "response": {"status": 200}} for request in requests]
        (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": entries}}))
        imported = run_oku("import", "har", "a.har", "-o", "spec.yaml", cwd=tmp_path)
        assert "--allow-env" not in imported.stdout + imported.stderr + (tmp_path / "spec.yaml").read_text()
        assert "Text that looks like a placeholder is sent literally" in imported.stderr
        done = run_oku("run", "spec.yaml", "-n", "4", "-w", "1", "--engine", engine, "--json", cwd=tmp_path)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    sent = (f"POST {target} HTTP/1.1\r\n".encode(), FOREIGN.encode(), FOREIGN_BODY.encode())
    posts = [request for request in heard if request[0].startswith(b"POST")]
    assert posts == [sent] * (4 if is_single else 2)
