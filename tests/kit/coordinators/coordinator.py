"""A real coordinator process for tests, and calls of its API."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.file_claims import build_claim
from tests.kit.runs.local_run import OKU, wait_until

from oku_coordinator.telemetry.prometheus.metrics import LIFETIME_S
from oku_core.spec.values.file_reference import PROOF_HEADER, PROOFS, FileRef

TOKEN = "token-for-tests-alone"
_READY_S = 60.0
"""On a machine that has other work, too."""


class CoordinatorApi:
    """Calls of the API, with the right token unless told otherwise."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.pid = 0
        """Of a process that was started for it."""
        self._proofs: dict[str, str] = {}
        """Of the files that it has uploaded, by their digests."""

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        token: str | None = TOKEN,
        proof: str | None = None,
    ) -> tuple[int, Any]:
        """Status and JSON document of one call; `proof` is that of a file."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if proof is not None:
            headers[PROOF_HEADER] = proof
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def upload(self, content: bytes, name: str = "some.bin") -> FileRef:
        """Upload a file; how a spec names it."""
        claim = build_claim(content)
        place = f"/api/files/{claim.digest}?size={len(content)}&offset=0"
        status, document = self.call("PUT", place, content, proof=claim.proof)
        assert status == 200, document
        self._proofs |= [claim]
        return FileRef.build(claim.digest, len(content), name)

    def submit(self, **spec: Any) -> str:
        """Submit a run, which may use the files that were uploaded; its id."""
        status, document = self.call("POST", "/api/runs", {PROOFS: self._proofs, **spec})
        assert status == 201, document
        return str(document["run"])

    def list_runs(self) -> list[dict[str, Any]]:
        """All runs, newest first."""
        status, document = self.call("GET", "/api/runs")
        assert status == 200, document
        runs: list[dict[str, Any]] = document
        return runs

    def summary(self, run: str) -> dict[str, Any]:
        """The summary of a run."""
        status, document = self.call("GET", f"/api/runs/{run}")
        assert status == 200, document
        summary: dict[str, Any] = document
        return summary

    def read_metric(self, name: str) -> float:
        """One figure of `/metrics`, named with its labels as it stands there; 0 when it is not there."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        return sum(float(line.removeprefix(f"{name} ")) for line in lines if line.startswith(f"{name} "))

    def settle_metrics(self) -> None:
        """Wait until `/metrics`, which is kept for a while, shows what has happened up to now."""
        time.sleep(LIFETIME_S)

    def count_messages(self, verdict: str) -> int:
        """How many checkpoints had this verdict."""
        return int(self.read_metric(f'oku_messages_total{{verdict="{verdict}"}}'))

    def wait_for_state(self, run: str, state: str, timeout_s: float = 30) -> dict[str, Any]:
        """Wait until a run is in a state; its summary then."""
        wait_until(lambda: bool(self.summary(run)["state"] == state), timeout_s, f"run {run} is {state}")
        return self.summary(run)


@contextmanager
def run_coordinator(
    broker_url: str, data_dir: Path, *flags: str, program: Sequence[str] = OKU
) -> Iterator[CoordinatorApi]:
    """Runs `oku coordinator` on a free port until the end of the block; `program` is the command `oku`."""
    data_dir.mkdir(mode=0o700, exist_ok=True)
    ready_file = data_dir / "ready"
    ready_file.unlink(missing_ok=True)
    command = [
        *program, "coordinator", "--broker-url", broker_url, "--data-dir", str(data_dir), "--token", TOKEN,
        "--port", "0", "--ready-file", str(ready_file), *flags,
    ]  # fmt: skip
    with (data_dir / "coordinator.log").open("a") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            wait_until(
                lambda: ready_file.exists() or process.poll() is not None, _READY_S, "the coordinator listens"
            )
            assert process.poll() is None, (data_dir / "coordinator.log").read_text()
            api = CoordinatorApi(f"http://{ready_file.read_text().strip()}")
            wait_until(
                lambda: _is_ready(api) or process.poll() is not None, _READY_S, "the coordinator is ready"
            )
            assert process.poll() is None, (data_dir / "coordinator.log").read_text()
            api.pid = process.pid
            yield api
        finally:
            process.terminate()


def _is_ready(api: CoordinatorApi) -> bool:
    try:
        with urllib.request.urlopen(f"{api.url}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
