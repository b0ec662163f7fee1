"""nginx as a target: one process that answers every request from memory; its own counter says how many.

Configuration, logs and temporary files lie in a folder of the benchmark; those of the system are not touched.
"""

import http.client
import os
import re
import socket
import time
from pathlib import Path
from typing import Self

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.install import describe_missing, find_program
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
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ return 200 "Hello, World!"; }}
    location = {status} {{ stub_status; }}
  }}
}}
"""
_CONNECTIONS = 4096


class Nginx:
    """Serves from entering to leaving.

    Args:
        folder: its configuration, its logs, its temporary files.
    """

    def __init__(self, folder: Path) -> None:
        program = find_program("nginx")
        if program is None:
            raise BenchmarkError(describe_missing("nginx"))
        self._port = _pick_port()
        self._asked = 0
        configuration = folder / "nginx.conf"
        configuration.write_text(
            _CONFIGURATION.format(folder=folder, port=self._port, status=_STATUS, connections=_CONNECTIONS)
        )
        command = (program, "-p", str(folder), "-e", str(folder / "nginx.log"), "-c", str(configuration))
        self._child = Child("nginx", command, folder / "nginx.log", os.environ)
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        self.url = f"http://127.0.0.1:{self._port}/{{i}}"
        """Template of its URLs, with `{i}` for the index."""

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

    def read_served(self) -> int:
        """How many requests it has received, without those that ask for this number."""
        self._connection.request("GET", _STATUS)
        text = self._connection.getresponse().read().decode("ascii")
        self._asked += 1
        counters = re.search(r"requests\s+\d+ \d+ (\d+)", text)
        if counters is None:
            raise BenchmarkError(f"nginx: {text[:100]!r} is not a status page")
        return int(counters[1]) - self._asked


def _pick_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
