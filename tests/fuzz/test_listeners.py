"""Whatever bytes reach the coordinator and the delay server, they go on, and neither log nor memory grows."""

import contextlib
import re
import socket
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.kit.coordinators.coordinator import TOKEN
from tests.kit.faults.abuse import Attacked, read_rss_mb, run_site
from tests.kit.faults.mutation import mutate_one_of

EXAMPLES = 1500
PATIENCE_S = 2.0
MOST_MB = 60
MOST_LOG_BYTES = 500_000
_STATUS_LINE = re.compile(rb"HTTP/\d\.\d ([2-5]\d\d) ")


def build_request(line: str, token: str | None, body: bytes = b"") -> bytes:
    """A request as it should be."""
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"{line} HTTP/1.1\r\nHost: a\r\n{authorization}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


_CHUNKED = (
    b"POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5;a=b\r\n{"a":\r\n2\r\n1}\r\n0\r\nT: x\r\n\r\n'
)
# With the token nothing that could be taken for a spec: nobody but this test may be sent anything.
TO_COORDINATOR = (
    *(build_request(f"GET {path}", TOKEN) for path in ("/api/runs", "/api/runs/x/ticks", "/api/outbox")),
    *(build_request(f"POST /api/runs/x/{action}", TOKEN, b"{}") for action in ("pause", "resume", "cancel")),
    build_request("GET /healthz", None),
    build_request("POST /api/runs", "wrong", b'{"requests": 10, "url": "http://127.0.0.1:1/"}'),
    _CHUNKED % b"/api/runs",
)  # fmt: skip
TO_SERVER = (
    b"GET /0 HTTP/1.1\r\nHost: a\r\nOku-Run: r\r\nOku-Delay: 1ms\r\nOku-Seed: 5\r\n\r\n" * 3,
    build_request("POST /x?y=z", None, b"12345"),
    build_request("GET /-/served?run=r", None),
    build_request("HEAD /7", None),
    _CHUNKED % b"/x",
)


def exchange(address: tuple[str, int], content: bytes) -> bytes:
    """Send bytes, and nothing more; what comes back, as far as that is soon."""
    received = b""
    with contextlib.suppress(OSError), socket.create_connection(address, PATIENCE_S) as connection:
        connection.settimeout(PATIENCE_S)
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        while len(received) < 1 << 20 and (part := connection.recv(65536)):
            received += part
    return received


def fuzz(attacked: Attacked, samples: Sequence[bytes], seed: str, examples: int) -> None:
    """Send changed samples; nothing may come of them but answers."""
    host, _, port = attacked.probe_url.split("/")[2].rpartition(":")
    memory_mb, log_bytes = read_rss_mb(attacked.pid), attacked.log.stat().st_size
    for number in range(examples):
        content = mutate_one_of(samples, f"{seed} {number}")
        answer = exchange((host, int(port)), content)
        if answer:
            status = _STATUS_LINE.match(answer)
            assert status, (content, answer)
            # Not implemented, and a version that is not spoken, are the caller's.
            assert status[1] < b"500" or status[1] in {b"501", b"505"}, (content, answer)
    with urllib.request.urlopen(attacked.probe_url, timeout=1) as response:
        assert response.status == 200
    assert read_rss_mb(attacked.pid) - memory_mb < MOST_MB
    assert attacked.log.stat().st_size - log_bytes < MOST_LOG_BYTES
    assert "Traceback" not in attacked.log.read_text()


@pytest.mark.timeout(3600)
def test_any_bytes_are_survived(tmp_path: Path, scale: int, seed: int) -> None:
    """Both processes answer or hang up, and a run after that is exact."""
    with run_site(tmp_path) as site:
        fuzz(site.coordinator, TO_COORDINATOR, f"{seed} coordinator", EXAMPLES * scale)
        fuzz(site.server, TO_SERVER, f"{seed} server", EXAMPLES * scale)
        run = site.api.submit(requests=300, url=site.target)
        summary = site.api.wait_for_state(run, "completed")
    assert summary["outcomes"]["ok"] == 300
