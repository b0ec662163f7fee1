"""nginx as a target: one process that answers from memory and counts requests itself.

The answer depends on the path: always the same, or one that varies as the answers of services do.
"""

import http.client
import os
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from oku_benchmarks.install import require_program
from oku_benchmarks.report import BenchmarkError
from oku_benchmarks.targets import Place, pick_port
from oku_cli.process.child import Child

_READY_S = 10.0
_STATUS = "/-/status"
_ITEMS = ",".join(['{"sku":"SKU-104729","name":"A thing with a name","price":19.95,"stock":42}'] * 13)
_CONFIGURATION = """\
# One process does everything, without a master that would only wait.
master_process off;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.errors;
worker_rlimit_nofile 12000;
events {{ worker_connections 12000; }}
http {{
  access_log off;
  default_type application/json;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  client_body_temp_path {folder}/nginx-body;
  proxy_temp_path {folder}/nginx-proxy;
  fastcgi_temp_path {folder}/nginx-fastcgi;
  uwsgi_temp_path {folder}/nginx-uwsgi;
  scgi_temp_path {folder}/nginx-scgi;
  upstream behind {{ server {behind}; keepalive 12000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    listen 127.0.0.1:{http2_port} http2 backlog=4096;
{tls}
    location = {status} {{ stub_status; }}
    location / {{ default_type text/plain; return 200 "Hello, World!"; }}
    location /varying/ {{
      add_header X-Request-Id $request_id;
      return 200 '{{"id":"$request_id","at":$msec}}';
    }}
    location /chunked/ {{
      # The length of what may include something is not known beforehand.
      ssi on;
      ssi_types *;
      add_header X-Request-Id $request_id;
      return 200 '{{"id":"$request_id","at":$msec}}';
    }}
    location /json/ {{
      add_header X-Request-Id $request_id;
      return 200 '{{"id":"$request_id","at":$msec,"items":[{items}]}}';
    }}
    location /behind/ {{
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }}
  }}
}}
"""
_TLS = """\
    listen 127.0.0.1:{port} ssl http2 backlog=4096;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    # One cipher for all clients: they prefer different ones, which cost different time.
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;"""


@dataclass(frozen=True)
class AnswerKind:
    """A kind of answer."""

    path: str
    is_tls: bool = False
    is_http2: bool = False


SAME, HTTP2 = "same", "HTTP/2"
ANSWER_KINDS: Mapping[str, AnswerKind] = {
    SAME: AnswerKind("/{i}"),
    "varying": AnswerKind("/varying/{i}"),
    "chunked": AnswerKind("/chunked/{i}"),
    "json": AnswerKind("/json/{i}"),
    "tls": AnswerKind("/varying/{i}", is_tls=True),
}
HTTP2_KINDS: Mapping[str, AnswerKind] = {
    HTTP2: AnswerKind("/{i}", is_http2=True),
    "HTTP/2, TLS": AnswerKind("/{i}", is_tls=True, is_http2=True),
    "HTTP/2, varying": AnswerKind("/varying/{i}", is_http2=True),
}
BEHIND = AnswerKind("/behind/{i}", is_http2=True)


class Nginx:
    """Serves from entering to leaving."""

    def __init__(self, folder: Path, *, has_tls: bool = False, behind: str = "127.0.0.1:9") -> None:
        folder.mkdir(parents=True)
        self._ports = {name: pick_port() for name in ("http", "http2", "https")}
        configuration = folder / "nginx.conf"
        text = _CONFIGURATION.format(
            folder=folder,
            behind=behind,
            port=self._ports["http"],
            http2_port=self._ports["http2"],
            tls=_build_tls(folder, self._ports["https"]) if has_tls else "",
            status=_STATUS,
            items=_ITEMS,
        )
        configuration.write_text(text)
        command = (
            require_program("nginx"), "-p", str(folder), "-e", str(folder / "nginx.log"), "-c",
            str(configuration),
        )  # fmt: skip
        self._child = Child("nginx", command, folder / "nginx.log", os.environ)
        self._connection = http.client.HTTPConnection("127.0.0.1", self._ports["http"], timeout=10)
        self._asked = 0
        self.url = self.build_url(ANSWER_KINDS[SAME])

    def __enter__(self) -> Self:
        """Start it and wait until it answers."""
        self._child.start()
        deadline = time.monotonic() + _READY_S
        while True:
            try:
                self.read_served()
            except OSError:
                self._connection.close()
                if time.monotonic() > deadline or self._child.find_death() is not None:
                    self._child.kill()
                    raise BenchmarkError(f"nginx does not start: {self._child.read_last_line()}") from None
                time.sleep(0.02)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._connection.close()
        self._child.terminate()
        if not self._child.wait(5.0):
            self._child.kill()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    def build_url(self, kind: AnswerKind) -> str:
        """The template of the URLs with a kind of answer."""
        port = self._ports["https" if kind.is_tls else "http2" if kind.is_http2 else "http"]
        return f"{'https' if kind.is_tls else 'http'}://127.0.0.1:{port}{kind.path}"

    def place(self, kind: AnswerKind) -> Place:
        """Its answers of a kind as a target."""
        return Place(self.build_url(kind), self.pid, self.read_served)

    def read_served(self) -> int:
        """How many requests it has received, without those for this number."""
        self._connection.request("GET", _STATUS)
        text = self._connection.getresponse().read().decode("ascii")
        self._asked += 1
        counters = re.search(r"requests\s+\d+ \d+ (\d+)", text)
        if counters is None:
            raise BenchmarkError(f"nginx: {text[:100]!r} is not a status page")
        return int(counters[1]) - self._asked


def _build_tls(folder: Path, port: int) -> str:
    certificate, key = folder / "nginx.pem", folder / "nginx.key"
    command = [
        require_program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "2",
        "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    subprocess.run(command, capture_output=True, check=True)
    return _TLS.format(port=port, certificate=certificate, key=key)
