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


@pytest.fixture
def heard() -> list[tuple[bytes, bytes, bytes]]:
    """What the recorder heard: request line, header of notes and body of each request."""
    return []


@pytest.fixture
def recorder(heard: list[tuple[bytes, bytes, bytes]]) -> Iterator[str]:
    """The URL of a recorder."""
    handler = type("OwnRecorder", (Recorder,), {"heard": heard})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


STYLED = {
    "openapi": "3.1.0",
    "servers": [{"url": "/api"}],
    "paths": {
        "/m/{p}": {
            "delete": {},
            "put": {
                "parameters": [
                    {"name": "p", "in": "path", "style": "matrix", "example": "v"},
                    {"name": "f", "in": "query", "content": {"application/json": {"example": {"a": 7}}}},
                    {"name": "X-Note", "in": "header", "example": ["a", "b"]},
                ],
                "requestBody": {"content": {"application/json": {"example": {"n": None}}}},
            },
        }
    },
}


def test_requests_arrive_as_they_were_imported(
    tmp_path: Path, recorder: str, heard: list[tuple[bytes, bytes, bytes]]
) -> None:
    """Commands of both shells, a form that was recorded as fields, parameters with styles."""
    fields = [{"name": "user", "value": "a b"}, {"name": "empty", "value": ""}]
    posted = {"method": "POST", "url": f"{recorder}/f", "headers": [], "postData": {"params": fields}}
    recording = {"log": {"entries": [{"request": posted, "response": {"status": 200}}]}}
    (tmp_path / "form.har").write_text(json.dumps(recording))
    (tmp_path / "api.json").write_text(json.dumps(STYLED))
    windows = f'curl ^"{recorder}/w?a=1^&b=^%^20^" ^\n  -H ^"X-Note: ^\\^"q^\\^"^" ^\n  --data-raw ^"^{{^}}^"'
    cases = [
        (
            ("curl", f"curl {recorder}/b -H $'X-Note: \\xe2\\x82\\xac' -d $'\\u20ac\\n'"),
            b"POST /b",
            "€",
            "€\n",
        ),
        (("curl", windows), b"POST /w?a=1&b=%20", '"q"', "{}"),
        (("har", "form.har"), b"POST /f", "", "user=a+b&empty="),
        (
            ("openapi", "api.json", "--base-url", recorder),
            b"PUT /api/m/;p=v?f=%7B%22a%22:7%7D",
            "a,b",
            '{"n": null}',
        ),
    ]
    for arguments, line, note, body in cases:
        imported = run_oku("import", *arguments, "-o", "spec.yaml", cwd=tmp_path)
        assert imported.returncode == 0, imported.stderr
        done = run_oku("run", "spec.yaml", "-n", "1", "-w", "1", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert heard.pop() == (line + b" HTTP/1.1\r\n", note.encode(), body.encode()), arguments


@pytest.mark.parametrize(
    ("engine", "is_single"), [(Engine.AIOHTTP, True), (Engine.HTTPTOOLS, False)], ids=["aiohttp", "httptools"]
)
def test_text_that_looks_like_placeholders_is_sent_byte_by_byte(
    tmp_path: Path,
    recorder: str,
    heard: list[tuple[bytes, bytes, bytes]],
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_single: bool,
) -> None:
    """A recording was made by others: none of its texts may send a variable of who runs it."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-them")
    target = "/a/{i}?q={env:AWS_SECRET_ACCESS_KEY}&f={file:id_rsa}&l={literal:i}"
    headers = [
        {"name": "X-Note", "value": FOREIGN}, {"name": "Content-Type", "value": "application/json"}
    ]  # fmt: skip
    posted = {
        "method": "POST", "url": f"{recorder}{target}", "headers": headers, "postData": {"text": FOREIGN_BODY}
    }  # fmt: skip
    requests = [posted] if is_single else [posted, {"method": "GET", "url": f"{recorder}/b", "headers": []}]
    entries = [{"request": request, "response": {"status": 200}} for request in requests]
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": entries}}))
    imported = run_oku("import", "har", "a.har", "-o", "spec.yaml", cwd=tmp_path)
    assert "--allow-env" not in imported.stdout + imported.stderr + (tmp_path / "spec.yaml").read_text()
    assert "Text that looks like a placeholder is sent literally" in imported.stderr
    done = run_oku("run", "spec.yaml", "-n", "4", "-w", "1", "--engine", engine, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sent = (f"POST {target} HTTP/1.1\r\n".encode(), FOREIGN.encode(), FOREIGN_BODY.encode())
    posts = [request for request in heard if request[0].startswith(b"POST")]
    assert posts == [sent] * (4 if is_single else 2)
