"""A real Loki for tests: one process on the loopback, on free ports, with all it keeps in one folder."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.kit.free_ports import pick_port
from tests.kit.loki.loki_queries import LokiQueries
from tests.kit.loki.torn_record import remove_torn_record
from tests.kit.mappings import merge
from tests.kit.requirement import miss

PATIENCE_S = 30.0
_POLL_S = 0.02


def search_loki() -> Path | None:
    """The binary: `OKU_LOKI`, `loki` on the path, or where the local cluster builds it; None without."""
    caches = (os.environ.get("LOCAL_CLUSTER_CACHE"), Path.home() / ".cache" / "local-cluster")
    paths = [os.environ.get("OKU_LOKI"), shutil.which("loki")]
    paths += [str(Path(cache) / "bin" / "loki") for cache in caches if cache]
    return next((Path(path) for path in paths if path and os.access(path, os.X_OK)), None)


def find_loki() -> Path:
    """The same; skips without."""
    if (found := search_loki()) is None:
        miss("there is no Loki: set OKU_LOKI to the path of its binary, or put it on the path")
    return found


class Loki(LokiQueries):
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
        self.port = pick_port(following=1)
        grpc_port = self.port + 1
        super().__init__(f"http://127.0.0.1:{self.port}")
        self.process: subprocess.Popen[bytes] | None = None
        self._config, self._data = folder / "loki.json", folder / "data"
        config = build_config(
            self._data, "127.0.0.1", self.port, grpc_port=grpc_port, multi_tenant=multi_tenant
        )
        self._config.write_text(json.dumps(merge(config, settings or {}), indent=2))  # JSON is YAML, too

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
        """End it at once (`kill -9`), if it runs, and remove the record that it was writing."""
        self._end(signal.SIGKILL)
        remove_torn_record(self._data / "wal")

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


def build_config(data: Path, host: str, port: int, *, grpc_port: int, multi_tenant: bool) -> dict[str, Any]:
    """A configuration of one process.

    Args:
        data: folder of all that it keeps.
        host: address that it listens at; all if empty.
        port: there.
        grpc_port: on the loopback, to speak to itself.
        multi_tenant: whether each call must name a tenant.
    """
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
            "http_listen_address": host,
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
