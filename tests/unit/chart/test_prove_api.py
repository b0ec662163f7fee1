import datetime as dt
import ipaddress
import json
import ssl
import sys
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

RUNS = [{"name": "t", "state": "running", "accounted": 1}]
SERVERS = {"items": [{"metadata": {"name": "s"}, "status": {"containerStatuses": [{"restartCount": 1}]}}]}
Answer = tuple[int, Any]


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python 3.13 and later begin."""
    build = ssl.create_default_context

    def build_strict(*arguments: Any, **named: Any) -> ssl.SSLContext:
        context = build(*arguments, **named)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", build_strict)


@contextmanager
def serve(answer: Callable[[str], Answer], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """What `answer` gives for a path, as JSON; where it is."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_DELETE(self) -> None:
            self._answer()

        def _answer(self) -> None:
            status, document = answer(self.path)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """A client that does not trust it hangs up."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def build_lax_tls(folder: Path) -> ssl.SSLContext:
    """TLS of an API whose certificate does not identify its authority's key; that one is in `ca.crt`."""
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in ("ca", "api")]
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in names]
    now = dt.datetime.now(dt.UTC)
    for name, key, file in zip(names, keys, ("ca.crt", "api.crt"), strict=True):
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=name is names[0], path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
            .sign(keys[0], hashes.SHA256())
        )
        (folder / file).write_bytes(certificate.public_bytes(Encoding.PEM))
    private = keys[1].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "api.key").write_bytes(private)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "api.crt", folder / "api.key")
    return context


@pytest.fixture
def pod(prove: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Takes where everything is that the script asks, as in the pod of the test."""

    def enter(url: str) -> None:
        monkeypatch.setattr(prove, "ACCOUNT", tmp_path)
        monkeypatch.setattr(prove, "KUBERNETES", url)
        (tmp_path / "token").write_text("token")
        told = {"OKU_COORDINATOR": url, "OKU_TOKEN": "t", "TEST_NAMESPACE": "load", "TEST_TIMEOUT_S": "20",
                "TEST_ROLE_BINDING": "oku-test",
                "TEST_SERVER_LABELS": "a=b", "TEST_WORKER_LABELS": "a=c"}  # fmt: skip
        for name, value in told.items():
            monkeypatch.setenv(name, value)

    return enter


@pytest.mark.usefixtures("strict")
def test_an_api_with_certificates_that_are_not_strict_is_accepted(
    prove: ModuleType, pod: Callable[[str], None], tmp_path: Path
) -> None:
    """Many clusters have no strict ones; a chain to the cluster's authority is enough, and required."""
    with serve(lambda _: (200, SERVERS), build_lax_tls(tmp_path)) as url:
        pod(url)
        assert prove.fetch_servers() == {"s 1"}
        build_lax_tls(tmp_path)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            prove.fetch_servers()


def test_a_missing_right_is_reported_at_once(
    prove: ModuleType,
    pod: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A missing right is not tried until the end and then reported as a run that was over too soon."""
    command = [sys.executable, "-c", "import time; time.sleep(20)"]
    monkeypatch.setattr(prove, "build_command", lambda _: command)
    now = int(time.time())
    runs = [{**RUNS[0], "name": f"helm-test-{now + seconds}"} for seconds in range(60)]
    with serve(lambda path: (200, runs) if path == "/api/runs" else (403, {})) as url:
        pod(url)
        assert prove.main() == 1
    assert capsys.readouterr().err == (
        "no worker can be killed: HTTP Error 403: Forbidden\n"
        "the rights of this test stay until the next one: HTTP Error 403: Forbidden\n"
    )


def test_a_run_that_cannot_begin_is_reported_with_its_reason_and_the_rights_are_given_back(
    prove: ModuleType,
    pod: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The reason is what the coordinator knows of the pod that cannot be scheduled."""
    reason = "waiting for workers: 0 of 2 connected: 0/1 nodes are available: 1 Insufficient cpu"
    now, asked = int(time.time()), []
    run = {"run": "r", "state": "pending", "accounted": 0}
    runs = [{**run, "name": f"helm-test-{now + seconds}"} for seconds in range(60)]

    def answer(path: str) -> Answer:
        asked.append(path)
        return 200, {"state": "pending", "notices": [reason]} if path == "/api/runs/r" else runs

    command = [sys.executable, "-c", "import time; time.sleep(20)"]
    monkeypatch.setattr(prove, "build_command", lambda _: command)
    with serve(answer) as url:
        pod(url)
        monkeypatch.setenv("TEST_TIMEOUT_S", "1")
        assert prove.main() == 1
    assert capsys.readouterr().err == f"the run did not end within 1 s: it is pending: {reason}\n"
    assert asked[-1] == "/apis/rbac.authorization.k8s.io/v1/namespaces/load/rolebindings/oku-test"


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        *(
            (urllib.error.HTTPError("http://x", code, "", Message(), None), code in {401, 403})
            for code in (401, 403, 404, 409, 503)
        ),
        (urllib.error.URLError(ssl.SSLCertVerificationError(1, "unknown authority")), True),
        (urllib.error.URLError(ssl.SSLEOFError(8, "EOF")), False),
        (urllib.error.URLError(ConnectionRefusedError(111, "refused")), False),
        (TimeoutError("timed out"), False),
    ],
    ids=str,
)
def test_it_tries_again_what_may_pass(prove: ModuleType, error: OSError, *, is_final: bool) -> None:
    """Missing rights and missing trust do not pass by themselves, so they are not retried."""
    assert prove.is_final(error) is is_final


@pytest.mark.parametrize(
    ("killed", "served", "before", "said"),
    [
        ("w", {"served": 10}, {"gone 0"}, ""),
        ("w", None, {"s 1"}, "what the delay servers served is not known, though none of them went"),
        ("w", None, {"s 0"}, ""),
        ("w", None, {"s 1", "gone 0"}, ""),
        (None, {"served": 10}, set(), "could be killed: raise tests.requests"),
    ],
)
def test_what_was_served_is_known_unless_a_server_left(
    prove: ModuleType,
    pod: Callable[[str], None],
    killed: str | None,
    served: dict[str, int] | None,
    before: set[str],
    said: str,
) -> None:
    """The number is unknown when a server is gone or was restarted."""
    with serve(lambda _: (200, SERVERS)) as url:
        pod(url)
        wrong = prove.find_unproved({"servers": served}, killed, frozenset(before))
    assert bool(wrong) is bool(said)
    assert said in wrong


def test_it_kills_a_worker_that_runs(prove: ModuleType, pod: Callable[[str], None]) -> None:
    """It also notes which delay servers there are."""
    asked: list[str] = []

    class Run:
        def poll(self) -> None:
            """It goes on."""

    def answer(path: str) -> Answer:
        asked.append(path)
        if path == "/api/runs":
            return 200, RUNS
        if "a%3Db" in path:
            return 200, SERVERS
        leaving = {"name": "leaving", "deletionTimestamp": "now"}
        return 200, {"items": [{"metadata": leaving}, {"metadata": {"name": "w"}}]}

    with serve(answer) as url:
        pod(url)
        assert prove.kill_worker(Run(), "t", time.monotonic() + 20) == ("w", {"s 1"})
    assert asked[-1] == "/api/v1/namespaces/load/pods/w?gracePeriodSeconds=1"
