"""A real Loki for tests: one process on the loopback, on free ports, with all it keeps in one folder."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest

PATIENCE_S = 30.0
_POLL_S = 0.02
_PAGE_LINES = 5000
"""As many as Loki gives at once by default."""


def find_loki() -> Path:
    """The binary: `OKU_LOKI`, `loki` on the path, or where the local cluster builds it; skips without."""
    caches = (os.environ.get("LOCAL_CLUSTER_CACHE"), Path.home() / ".cache" / "local-cluster")
    places = [os.environ.get("OKU_LOKI"), shutil.which("loki")]
    places += [str(Path(cache) / "bin" / "loki") for cache in caches if cache]
    for place in places:
        if place and os.access(place, os.X_OK):
            return Path(place)
    text = "there is no Loki: set OKU_LOKI to the path of its binary, or put it on the path"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


class Loki:
    """Runs from `start` to `stop` or `kill`, and again with the same data and ports as often as wanted.

    Args:
        folder: for its configuration, data and log.
        multi_tenant: whether each call must name a tenant.
        settings: of Loki, merged into those of the tests, section by section.
    """

    def __init__(
        self, folder: Path, *, multi_tenant: bool = False, settings: Mapping[str, Any] | None = None
    ) -> None:
        self._binary = find_loki()
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "loki.log"
        self.port, grpc_port = _choose_ports(2)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self._config = folder / "loki.json"
        config = _build_config(folder / "data", self.port, grpc_port, multi_tenant=multi_tenant)
        self._config.write_text(json.dumps(_merge(config, settings or {}), indent=2))  # JSON is YAML, too

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start it and do not wait."""
        assert self.process is None, "it runs"
        with self.log.open("ab") as log:
            command = [str(self._binary), f"-config.file={self._config}"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._config.parent)

    def wait_until_ready(self) -> None:
        """Wait until it takes lines and answers queries."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            assert self.process is not None
            assert self.process.poll() is None, self._say("Loki has ended")
            assert time.monotonic() < deadline, self._say("Loki is not ready in time")
            time.sleep(_POLL_S)

    def is_ready(self) -> bool:
        """Whether it says so."""
        try:
            with urllib.request.urlopen(f"{self.url}/ready", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End it in order, if it runs."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once (`kill -9`), if it runs."""
        self._end(signal.SIGKILL)

    def get(self, path: str, tenant: str = "", **params: object) -> Any:
        """The JSON document of a GET, such as `/loki/api/v1/labels`."""
        request = urllib.request.Request(f"{self.url}{path}?{urllib.parse.urlencode(params)}")
        if tenant:
            request.add_header("X-Scope-OrgID", tenant)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{error.code} {error.read().decode(errors='replace')}") from error

    def query(self, query: str, *, at_s: float | None = None, tenant: str = "") -> list[dict[str, Any]]:
        """The result of an instant query, at this moment unless told otherwise."""
        document = self.get("/loki/api/v1/query", tenant, query=query, time=at_s or time.time())
        result: list[dict[str, Any]] = document["data"]["result"]
        return result

    def query_range(
        self, query: str, *, start_ns: int, end_ns: int, step_s: float = 1.0, tenant: str = ""
    ) -> list[dict[str, Any]]:
        """The result of a metric query over a time, as Grafana asks it."""
        document = self.get(
            "/loki/api/v1/query_range", tenant, query=query, start=start_ns, end=end_ns, step=f"{step_s}s"
        )
        result: list[dict[str, Any]] = document["data"]["result"]
        return result

    def fetch_lines(
        self, selector: str, *, start_ns: int | None = None, end_ns: int | None = None, tenant: str = ""
    ) -> list[tuple[int, str]]:
        """Times and lines of all streams that a selector takes, oldest first; of the last day if not told.

        Loki hides here that a line is stored twice, unlike in `count_lines`. In neither does it show lines
        that it has just taken when their time is more than about 2.6 hours ago. Not more than a page of lines
        may have the same time.
        """
        end = time.time_ns() + 3600 * 10**9 if end_ns is None else end_ns
        start = end - 25 * 3600 * 10**9 if start_ns is None else start_ns
        found: list[tuple[int, str]] = []
        while True:
            document = self.get(
                "/loki/api/v1/query_range", tenant,
                query=selector, start=start, end=end, direction="forward", limit=_PAGE_LINES,
            )  # fmt: skip
            streams = document["data"]["result"]
            page = sorted((int(at), line) for stream in streams for at, line, *_ in stream["values"])
            if len(page) < _PAGE_LINES:
                return found + page
            newest = page[-1][0]
            assert newest > start, "more lines of one moment than a page holds"
            found += [line for line in page if line[0] < newest]
            start = newest

    def count_lines(self, selector: str, *, window: str = "1d", tenant: str = "") -> int:
        """How many lines a selector takes, by `count_over_time` up to now; one stored twice counts twice."""
        result = self.query(f"sum(count_over_time({selector}[{window}]))", tenant=tenant)
        return int(result[0]["value"][1]) if result else 0

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process = None

    def _say(self, what: str) -> str:
        return f"{what}:\n{self.log.read_text(errors='replace')[-4000:]}"


def _choose_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for taken in sockets:
            taken.bind(("127.0.0.1", 0))
        return [int(taken.getsockname()[1]) for taken in sockets]
    finally:
        for taken in sockets:
            taken.close()


def _build_config(data: Path, port: int, grpc_port: int, *, multi_tenant: bool) -> dict[str, Any]:
    schema = {
        "from": "2024-01-01",
        "store": "tsdb",
        "object_store": "filesystem",
        "schema": "v13",
        "index": {"prefix": "index_", "period": "24h"},
    }
    return {
        "auth_enabled": multi_tenant,
        "server": {
            "http_listen_address": "127.0.0.1",
            "http_listen_port": port,
            "grpc_listen_address": "127.0.0.1",
            "grpc_listen_port": grpc_port,
            "log_level": "warn",
        },
        "common": {
            "path_prefix": str(data),
            "instance_addr": "127.0.0.1",
            "replication_factor": 1,
            # Else chunks go to where the tests were started, and are found by the next Loki.
            "storage": {
                "filesystem": {
                    "chunks_directory": str(data / "chunks"),
                    "rules_directory": str(data / "rules"),
                }
            },
            "ring": {"kvstore": {"store": "inmemory"}},
        },
        "schema_config": {"configs": [schema]},
        "ingester": {"lifecycler": {"min_ready_duration": "0s"}},
        # Without the ring of query schedulers, which would put off the first answer by 10 s.
        "frontend_worker": {"frontend_address": f"127.0.0.1:{grpc_port}"},
        "limits_config": {"volume_enabled": True},
        "analytics": {"reporting_enabled": False},
    }


def _merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged
