"""A release of the chart in a cluster, as its users have it: by helm, by `oku --kube`, by its API."""

import base64
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.kubernetes.cluster import Cluster, KubectlError, Object, is_ready
from tests.kit.kubernetes.forward import Forward, ForwardedApi
from tests.kit.loki.loki_queries import LokiQueries
from tests.kit.runs.local_run import OKU, wait_until

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "oku"
VALUES = ROOT / "k8s" / "values" / "tests.yaml"
INSTALL_TIMEOUT_S = 240
_PATIENCE_S = 90.0
_LOOK_S = 0.3


class Release:
    """One release of the chart, from its installation to its removal.

    Args:
        cluster: the cluster that it is installed in.
        namespace: the namespace of its objects.
        name: the name of the release.
        values: values beside those for tests.
    """

    def __init__(
        self, cluster: Cluster, namespace: str, name: str = "oku", values: Mapping[str, Any] | None = None
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = name
        self._values = dict(values or {})

    def install(self, *flags: str) -> str:
        """Install it, and wait until all its pods are ready; the notes."""
        return self._helm("install", str(CHART), *self._build_flags(), *flags)

    def upgrade(self, *flags: str) -> None:
        """Change it, and wait until all its pods are ready again."""
        self._helm("upgrade", str(CHART), *self._build_flags(), *flags)

    def uninstall(self) -> str:
        """Remove it, and wait until its pods are gone; what helm says."""
        said = self._helm("uninstall", "--wait", f"--timeout={INSTALL_TIMEOUT_S}s")
        self.cluster.wait_until_gone("pods", self.namespace, self.build_selector())
        return said

    def test(self) -> str:
        """Run `helm test`; what helm says."""
        return self._helm("test", "--timeout=330s", "--logs=false")

    def build_selector(self, component: str = "") -> str:
        """The labels of its objects, or of one of its components."""
        labels = f"app.kubernetes.io/name=oku,app.kubernetes.io/instance={self.name}"
        return f"{labels},app.kubernetes.io/component={component}" if component else labels

    def fetch_pods(self, component: str) -> list[Object]:
        """The pods of a component that are not about to leave, oldest first."""
        return self.cluster.fetch_pods(self.namespace, self.build_selector(component))

    def list_ready(self, component: str) -> list[str]:
        """The names of its pods that are ready."""
        return [pod["metadata"]["name"] for pod in self.fetch_pods(component) if is_ready(pod)]

    def read_ready_since(self, component: str) -> dict[str, str]:
        """Of each of its pods that is ready, by name, since when it has been so without a break."""
        return {
            pod["metadata"]["name"]: each["lastTransitionTime"]
            for pod in self.fetch_pods(component)
            for each in pod["status"].get("conditions", ())
            if each["type"] == "Ready" and each["status"] == "True"
        }

    def count_wanted(self, component: str) -> int:
        """How many pods its Deployment is to have."""
        where = ("-n", self.namespace, "-o", "jsonpath={.spec.replicas}")
        return int(self.cluster.call("get", "deployment", f"{self.name}-{component}", *where))

    def wait_for_pods(self, component: str, count: int) -> None:
        """Wait until exactly so many pods of a component are there, and ready."""

        def is_so() -> bool:
            pods = self.fetch_pods(component)
            return len(pods) == count and all(map(is_ready, pods))

        wait_until(is_so, _PATIENCE_S, f"{count} pods of {component} are ready", _LOOK_S)

    def scale(self, component: str, size: int) -> None:
        """Scale a Deployment, as a user would."""
        name = f"deployment/{self.name}-{component}"
        self.cluster.call("scale", name, "-n", self.namespace, f"--replicas={size}")

    def delete_pod(self, name: str, *flags: str) -> None:
        """Delete a pod, and do not wait."""
        self.cluster.call("delete", "pod", name, "-n", self.namespace, "--wait=false", *flags)

    def replace_pod(self, component: str) -> None:
        """Delete a pod of a component, and wait until another is ready in its place."""
        self.cluster.replace_pod(self.namespace, self.build_selector(component))

    def exec(self, pod: str, *command: str) -> str:
        """What a command prints in a pod."""
        return self.cluster.call("exec", pod, "-n", self.namespace, "--", *command)

    def evict_pod(self, name: str) -> None:
        """Evict a pod, as a drain of its node does: again and again until its budget lets it go."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
        }
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction"

        def is_taken() -> bool:
            try:
                self.cluster.call("create", "--raw", path, "-f", "-", document=eviction)
            except KubectlError as error:
                # The budget is reckoned a while after its pods have changed.
                if "disruption budget" not in str(error):
                    raise
                return False
            return True

        wait_until(is_taken, _PATIENCE_S, f"{name} may be evicted", _LOOK_S)

    def build_oku(self, *arguments: str) -> list[str]:
        """`oku` with the flags that name this release."""
        kube = ("--kube", "--context", self.cluster.context, "--namespace", self.namespace)
        return [*OKU, *arguments, *kube, "--release", self.name]

    def oku(self, *arguments: str) -> str:
        """What `oku` prints for this release."""
        done = subprocess.run(self.build_oku(*arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *flags: str) -> dict[str, Any]:
        """Make a run and wait for its end; its summary."""
        summary: dict[str, Any] = json.loads(self.oku("run", *flags, "--quiet", "--json"))
        return summary

    def fetch_token(self) -> str:
        """The token of its API."""
        secret = self.cluster.fetch("secret", f"{self.name}-token", self.namespace)
        return base64.b64decode(secret["data"]["token"]).decode()

    @contextmanager
    def open_api(self) -> Iterator[ForwardedApi]:
        """Its API, through a forwarded port."""
        with Forward(self.cluster, self.namespace, f"{self.name}-coordinator", 8700) as forward:
            yield ForwardedApi(forward, self.fetch_token())

    @contextmanager
    def open_loki(self) -> Iterator[LokiQueries]:
        """Its Loki, through a forwarded port."""
        with Forward(self.cluster, self.namespace, f"{self.name}-loki", 3100) as forward:
            yield LokiQueries(forward.url)

    def _build_flags(self) -> list[str]:
        values = [f"--set-json={key}={json.dumps(value)}" for key, value in self._values.items()]
        return ["--values", str(VALUES), "--wait", f"--timeout={INSTALL_TIMEOUT_S}s", *values]

    def _helm(self, verb: str, *arguments: str) -> str:
        where = ("--kube-context", self.cluster.context, "--namespace", self.namespace)
        done = subprocess.run(
            ["helm", verb, self.name, *arguments, *where], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def wait_until_published(api: ForwardedApi) -> None:
    """Wait until Loki has all lines of a release."""
    wait_until(lambda: _count_waiting(api) == 0, _PATIENCE_S, "Loki has all lines", _LOOK_S)


def _count_waiting(api: ForwardedApi) -> int:
    status, outbox = api.call("GET", "/api/outbox")
    assert status == 200
    return int(outbox["lines"])
