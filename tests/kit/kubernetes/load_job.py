"""Jobs that run load tests, as docs/operations.md has them, and what happens to their pods."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from tests.kit.documents.blocks import Mark, read_blocks
from tests.kit.kubernetes.cluster import Cluster, Object, is_ready
from tests.kit.kubernetes.forward import ForwardedApi
from tests.kit.kubernetes.release import ROOT, Release
from tests.kit.runs.local_run import wait_until

from oku_core.accounting.run_state import FINAL_STATES, RunState

_PAGE = ROOT / "docs" / "operations.md"
_JOB_LABEL = "batch.kubernetes.io/job-name"
_PATIENCE_S = 120.0
_LOOK_S = 0.2
# A file in memory counts for the container and not for the process that writes it, so it is the command, the
# largest process there, that the kernel kills.
_FILL_MEMORY = """
import os
file = os.memfd_create("filler")
while True:
    os.write(file, bytes(1 << 20))
"""


def read_manifests() -> Iterator[Object]:
    """The objects that the page shows, in their order."""
    for block in read_blocks(_PAGE):
        if Mark.MANIFESTS in block.marks:
            yield from yaml.safe_load_all(block.content)


def find_pod_template(manifest: Object) -> Object:
    """The template of the pods of a Job or of a CronJob."""
    spec = manifest["spec"].get("jobTemplate", manifest)["spec"]
    template: Object = spec["template"]
    return template


class LoadJob:
    """A Job, its pods and its run.

    Args:
        release: whose coordinator has the run.
        api: of that.
        name: of the Job, and so of its run.
    """

    def __init__(self, release: Release, api: ForwardedApi, name: str) -> None:
        self.name = name
        self._release = release
        self._api = api

    @property
    def cluster(self) -> Cluster:
        """Where it is."""
        return self._release.cluster

    def list_runs(self) -> list[dict[str, Any]]:
        """The runs that it has begun, newest first."""
        return [run for run in self._api.list_runs() if run["name"] == self.name]

    def fetch_summary(self) -> dict[str, Any]:
        """The summary of its only run."""
        runs = self.list_runs()
        assert len(runs) == 1, f"job {self.name} has begun {len(runs)} runs"
        return self._api.summary(runs[0]["run"])

    def fetch_pods(self) -> list[Object]:
        """Its pods, those that have ended included."""
        return self.cluster.fetch_all("pods", self._release.namespace, f"{_JOB_LABEL}={self.name}")

    def find_pod(self) -> str:
        """The pod that follows the run, waited for."""

        def list_all() -> list[str]:
            return [pod["metadata"]["name"] for pod in self.fetch_pods() if is_ready(pod)]

        self._wait(lambda: bool(list_all()), "has a pod")
        [pod] = list_all()
        return pod

    def fetch_status(self) -> Object:
        """What Kubernetes says of it."""
        status: Object = self.cluster.fetch("job", self.name, self._release.namespace)["status"]
        return status

    def find_end(self) -> tuple[str, str]:
        """Type and reason of the condition with which it has ended; empty before."""
        ended = [
            each
            for each in self.fetch_status().get("conditions", ())
            if each["type"] in {"Complete", "Failed"} and each["status"] == "True"
        ]
        return (ended[0]["type"], ended[0].get("reason", "")) if ended else ("", "")

    def wait_for_end(self) -> tuple[str, str]:
        """Wait until it has ended; type and reason of its condition."""
        self._wait(lambda: self.find_end() != ("", ""), "has ended")
        return self.find_end()

    def is_in_the_middle(self) -> bool:
        """Whether some requests of its run are accounted; the run must not be over."""
        if not self.list_runs():
            return False
        summary = self.fetch_summary()
        is_over = summary["accounted"] == summary["requests"] or summary["state"] in FINAL_STATES
        assert not is_over, f"the run of {self.name} is {summary['state']}: it has to be longer"
        return bool(summary["state"] == RunState.RUNNING and summary["accounted"])

    def wait_until_lost(self, pod: str) -> Object | None:
        """Wait until a pod of it has ended; what is left of it, None if nothing is."""

        def find() -> Object | None:
            return next((each for each in self.fetch_pods() if each["metadata"]["name"] == pod), None)

        self._wait(lambda: (left := find()) is None or left["status"]["phase"] == "Failed", f"lost {pod}")
        return find()

    def find_succeeded(self) -> str:
        """The pod that has ended with exit code 0."""
        [pod] = [each for each in self.fetch_pods() if each["status"]["phase"] == "Succeeded"]
        return str(pod["metadata"]["name"])

    def run_out_of_memory(self, pod: str) -> None:
        """Fill the memory of the container of a pod, until the kernel kills."""
        command = ("exec", pod, "-n", self._release.namespace, "--", "python", "-c", _FILL_MEMORY)
        done = subprocess.run(self.cluster.build_command(*command), capture_output=True, check=False)
        assert done.returncode != 0, "the memory of the container has no limit"

    def drain_node(self, pod: str) -> None:
        """Drain the node of a pod of all pods of this Job, and let pods in again; it may be the only node."""
        node = self.cluster.fetch("pod", pod, self._release.namespace)["spec"]["nodeName"]
        ours = f"--pod-selector={_JOB_LABEL}={self.name}"
        try:
            self.cluster.call("drain", node, ours, "--ignore-daemonsets")
        finally:
            self.cluster.call("uncordon", node)

    def remove(self) -> None:
        """Delete it, and end its run if it goes on."""
        self.cluster.call("delete", "job", self.name, "-n", self._release.namespace, "--ignore-not-found")
        for run in self.list_runs():
            self._api.call("POST", f"/api/runs/{run['run']}/cancel")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, _PATIENCE_S, f"job {self.name} {what}", _LOOK_S)
