"""nginx as a target: one process that answers every request from memory; its own counter says how many.

It is asked for that in HTTP/1.1, whatever contestants speak. What it answers depends on the path of a
request, see `answer_kinds`. Configuration, logs and temporary files lie in a folder of the benchmark; those
of the system are not touched.
"""

import http.client
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Self

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.install import require_program
from oku_benchmarks.measuring.target import pick_port
from oku_benchmarks.turns.answer_kinds import ANSWER_KINDS, LOCATIONS, SAME, AnswerKind, build_choices
from oku_cli.process.child import Child

_READY_S = 10.0
_STATUS = "/-/status"
_CONFIGURATION = """\
# One process does everything: as one worker process, without a master that would only wait.
master_process off;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.errors;
worker_rlimit_nofile {connections};
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  default_type text/plain;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  client_body_temp_path {folder}/nginx-body;
  proxy_temp_path {folder}/nginx-proxy;
  fastcgi_temp_path {folder}/nginx-fastcgi;
  uwsgi_temp_path {folder}/nginx-uwsgi;
  scgi_temp_path {folder}/nginx-scgi;
{choices}
{upstream}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
{listeners}
{locations}
    location = {status} {{ stub_status; }}
  }}
}}
"""
_HTTP2 = "    listen 127.0.0.1:{port} http2 backlog=4096;"
_TLS = """\
    listen 127.0.0.1:{port} ssl{http2} backlog=4096;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    # One cipher for all clients: they prefer different ones, which cost different time.
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;"""
_UPSTREAM = """\
  upstream behind {{
    server {address};
    keepalive {connections};
  }}"""
_PASSED_ON = """\
    location /behind/ {
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }"""
_CONNECTIONS = 4096
_CONNECTIONS_BEHIND = 12_000
"""If it passes requests on: one for each of them in flight."""


class Nginx:
    """Serves from entering to leaving.

    Args:
        folder: its configuration, its logs, its temporary files.
        has_tls: whether it speaks TLS, too, with a certificate that it has signed itself.
        has_http2: whether it speaks HTTP/2, too: in clear on a port of its own, and over TLS.
        behind: the address of a server of HTTP/1.1 that gets what is asked of `/behind/`; empty for none.
    """

    def __init__(
        self, folder: Path, *, has_tls: bool = False, has_http2: bool = False, behind: str = ""
    ) -> None:
        program = require_program("nginx")
        self._port, self._http2_port, self._tls_port = pick_port(), pick_port(), pick_port()
        connections = _CONNECTIONS_BEHIND if behind else _CONNECTIONS
        listeners = [
            *([_HTTP2.format(port=self._http2_port)] if has_http2 else []),
            *([_build_tls(folder, self._tls_port, has_http2=has_http2)] if has_tls else []),
        ]
        self._asked = 0
        configuration = folder / "nginx.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                folder=folder,
                port=self._port,
                status=_STATUS,
                connections=connections,
                choices=build_choices(),
                upstream=_UPSTREAM.format(address=behind, connections=connections) if behind else "",
                locations="\n".join([LOCATIONS, *([_PASSED_ON] if behind else [])]),
                listeners="\n".join(listeners),
            )
        )
        command = (program, "-p", str(folder), "-e", str(folder / "nginx.log"), "-c", str(configuration))
        self._child = Child("nginx", command, folder / "nginx.log", os.environ)
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        (self.url,) = self.build_urls(ANSWER_KINDS[SAME])
        """Template of its URLs with the answer that is always the same, with `{i}` for the index."""

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
            self._child.wait(5.0)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    def build_urls(self, kind: AnswerKind) -> tuple[str, ...]:
        """Templates of the URLs with a kind of answer, which may need TLS, with `{i}` for the index."""
        scheme, port = "http", self._http2_port if kind.is_http2 else self._port
        if kind.is_tls:
            scheme, port = "https", self._tls_port
        return tuple(f"{scheme}://127.0.0.1:{port}{path}" for path in kind.paths)

    def read_served(self) -> int:
        """How many requests it has received, without those that ask for this number."""
        self._connection.request("GET", _STATUS)
        text = self._connection.getresponse().read().decode("ascii")
        self._asked += 1
        counters = re.search(r"requests\s+\d+ \d+ (\d+)", text)
        if counters is None:
            raise BenchmarkError(f"nginx: {text[:100]!r} is not a status page")
        return int(counters[1]) - self._asked


def _build_tls(folder: Path, port: int, *, has_http2: bool) -> str:
    certificate, key = folder / "nginx.pem", folder / "nginx.key"
    command = [
        require_program("openssl"), "req", "-x509",
        "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-subj", "/CN=127.0.0.1", "-days", "2", "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"openssl makes no certificate: {done.stderr.strip().rpartition(chr(10))[2]}")
    http2 = " http2" if has_http2 else ""
    return _TLS.format(port=port, http2=http2, certificate=certificate, key=key)
