"""A local port that is forwarded to a Service of a cluster, for tests in which its pod may die."""

import re
import subprocess
import tempfile
import time
import urllib.error
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self

from tests.kit.coordinators.coordinator import CoordinatorApi
from tests.kit.kubernetes.cluster import Cluster
from tests.kit.runs.local_run import wait_until

_FORWARDING = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+)", re.MULTILINE)
_READY_S = 30.0
_PATIENCE_S = 120.0
_PAUSE_S = 0.5


class Forward:
    """A child that forwards a port.

    Args:
        cluster: the cluster of the Service.
        namespace: of the Service.
        service: its name.
        port: its port.
    """

    def __init__(self, cluster: Cluster, namespace: str, service: str, port: int) -> None:
        self._command = cluster.build_command(
            "port-forward", "-n", namespace, "--address", "127.0.0.1", f"service/{service}"
        )
        self._remote = port
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.end()

    @property
    def url(self) -> str:
        """The local end, which stays the same when it is started again."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start a child, and wait until it forwards."""
        ports = f"{self._port or ''}:{self._remote}"
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            with log.open("wb") as output:
                process = subprocess.Popen([*self._command, ports], stdout=output, stderr=output)
            self._process = process
            wait_until(
                lambda: bool(_FORWARDING.search(log.read_text())) or process.poll() is not None,
                _READY_S, "a port is forwarded",
            )  # fmt: skip
            if found := _FORWARDING.search(log.read_text()):
                self._port = int(found[1])

    def end(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class ForwardedApi(CoordinatorApi):
    """Calls of an API behind a forwarded port, tried again while its pod is away.

    Args:
        forward: to the coordinator.
        token: of the release.
    """

    def __init__(self, forward: Forward, token: str) -> None:
        super().__init__(forward.url)
        self._forward = forward
        self._token = token

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        token: str | None = None,
        proof: str | None = None,
    ) -> tuple[int, Any]:
        """Status and JSON document of one call; with the token of the release unless another is given."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return super().call(method, path, body, self._token if token is None else token, proof)
            except (urllib.error.URLError, HTTPException, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
                self._forward.end()
                self._forward.start()
