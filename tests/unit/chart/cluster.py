"""As much of a Kubernetes API as `helm template --dry-run=server` asks for: Secrets."""

import json
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@contextmanager
def serve_secrets(
    folder: Path, secrets: Mapping[str, Mapping[str, str]], *, forbidden: bool = False
) -> Iterator[Path]:
    """A cluster with these Secrets in every namespace, or that lets nobody read any; its kubeconfig."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            status, document = 200, _answer(path, secrets)
            if forbidden and "/secrets/" in path:
                status, document = 403, _build_failure(403, "Forbidden")
            elif document is None:
                status, document = 404, _build_failure(404, "NotFound")
            body = json.dumps(document)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield _write_kubeconfig(folder, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _build_failure(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "reason": reason, "message": reason.lower(), "code": code}


def _answer(path: str, secrets: Mapping[str, Mapping[str, str]]) -> dict[str, Any] | None:
    if path == "/version":
        return {"major": "1", "minor": "34", "gitVersion": "v1.34.4"}
    if path == "/api/v1":
        kind = {"name": "secrets", "kind": "Secret", "namespaced": True, "singularName": "", "verbs": ["get"]}
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [kind]}
    namespace, _, name = path.removeprefix("/api/v1/namespaces/").partition("/secrets/")
    if name in secrets:
        data = {key: b64encode(value.encode()).decode() for key, value in secrets[name].items()}
        metadata = {"name": name, "namespace": namespace, "uid": "1"}
        return {"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "data": data}
    return None


def _write_kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    path.write_text(json.dumps(config))
    return path
