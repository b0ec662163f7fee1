"""A Kubernetes cluster for tests, by kubectl; what a test makes in it lies in namespaces of its own."""

import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.kit.requirement import miss
from tests.kit.runs.local_run import wait_until

CONTEXT_VARIABLE = "OKU_TEST_CONTEXT"
"""Names the kube context to test in: nobody's cluster is taken because it is the current one."""
_CHART = Path(__file__).parents[3] / "charts" / "oku" / "Chart.yaml"
PREFIX = "oku-test-"
"""Of the namespaces of tests."""

Object = dict[str, Any]

ANY_USER = 1_000_650_000
"""A user and a group without a name, as the restricted-v2 SCC of OpenShift picks them."""
_WRITERS = (10001, 999, ANY_USER)
"""The users whose files are on volumes: Oku's and Loki's, and Valkey's."""
_PATIENCE_S = 180.0
_LOOK_S = 0.3
_REMOVALS = 3
_REMOVAL_PAUSE_S = 5.0


def require_cluster() -> "Cluster":
    """The cluster to test in; skips without, fails in CI."""
    context = os.environ.get(CONTEXT_VARIABLE, "")
    missing = [program for program in ("kubectl", "helm", "kubeconform") if shutil.which(program) is None]
    if not context:
        miss(f"no cluster to test in: set {CONTEXT_VARIABLE} to a kube context")
    if missing:
        miss(f"not on the path: {', '.join(missing)}")
    return Cluster(context)


class KubectlError(AssertionError):
    """What kubectl, or Helm, said."""


class Cluster:
    """Calls of kubectl.

    Args:
        context: of kubectl's configuration.
    """

    def __init__(self, context: str) -> None:
        self.context = context
        self._remover = ThreadPoolExecutor(2)
        self._removals: list[Future[None]] = []

    def build_command(self, *arguments: str) -> list[str]:
        """The command line of a call."""
        return ["kubectl", "--context", self.context, *arguments]

    def call(self, *arguments: str, document: Object | None = None) -> str:
        """What a call prints; `KubectlError` when it fails."""
        given = None if document is None else json.dumps(document)
        return _call(self.build_command(*arguments), given)

    def fetch(self, kind: str, name: str, namespace: str) -> Object:
        """One object; one of the whole cluster without a namespace."""
        where = ["-n", namespace] if namespace else []
        document: Object = json.loads(self.call("get", kind, name, *where, "-o", "json"))
        return document

    def fetch_all(self, kind: str, namespace: str = "", selector: str = "") -> list[Object]:
        """All objects of a kind, of the whole cluster without a namespace."""
        where = ["-n", namespace] if namespace else ["--all-namespaces"]
        which = ["-l", selector] if selector else []
        items: list[Object] = json.loads(self.call("get", kind, *where, *which, "-o", "json"))["items"]
        return items

    def fetch_pods(self, namespace: str, selector: str) -> list[Object]:
        """The pods that are not about to leave, oldest first."""
        pods = self.fetch_all("pods", namespace, selector)
        staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return sorted(staying, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def replace_pod(self, namespace: str, selector: str) -> None:
        """Delete the oldest pod of these, and wait until as many as before are ready without it."""
        old = self.fetch_pods(namespace, selector)
        left = old[0]["metadata"]
        self.call("delete", "pod", left["name"], "-n", namespace, "--wait=false")

        def is_replaced() -> bool:
            pods = self.fetch_pods(namespace, selector)
            uids = {pod["metadata"]["uid"] for pod in pods}
            return len(pods) == len(old) and left["uid"] not in uids and all(map(is_ready, pods))

        wait_until(is_replaced, _PATIENCE_S, f"another pod is ready in place of {left['name']}", _LOOK_S)

    def apply(self, document: Object) -> None:
        """Make an object, or change it."""
        self.call("apply", "-f", "-", document=document)

    def list_kinds(self, *, namespaced: bool) -> list[str]:
        """The kinds of objects that can be listed, with their groups."""
        flags = (f"--namespaced={str(namespaced).lower()}", "--verbs=list", "-o", "name")
        return self.call("api-resources", *flags).split()

    def find_traces(self, namespace: str = PREFIX) -> set[str]:
        """What names a namespace of tests and does not lie in it, the namespace itself first of all."""
        kinds = [kind for kind in self.list_kinds(namespaced=False) if "metrics" not in kind]
        names = self.call("get", ",".join(kinds), "-o", "name").split()
        claims = {
            f"persistentvolume/{volume['metadata']['name']}": volume["spec"].get("claimRef", {})
            for volume in self.fetch_all("persistentvolumes")
        }
        taken = {name for name, claim in claims.items() if namespace in claim.get("namespace", "")}
        return taken | {name for name in names if namespace in name}

    def wait_until_clean(self, before: set[str]) -> None:
        """Wait until there are no more traces than before; namespaces take their time."""
        for removal in self._removals:
            removal.result()
        what = "namespaces of tests are gone"
        wait_until(lambda: self.find_traces() <= before, _PATIENCE_S, what, _LOOK_S)

    @contextmanager
    def make_namespace(self) -> Iterator[str]:
        """A namespace that lets in pods of the restricted standard only.

        It is removed after the block, while tests go on; what that meets `wait_until_clean` raises.
        """
        name = f"{PREFIX}{secrets.token_hex(3)}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        metadata = {"name": name, "labels": labels}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        try:
            yield name
        finally:
            self._removals.append(self._remover.submit(self._remove_at_last, name))

    def fetch_objects(self, namespace: str) -> set[str]:
        """The names of all that lies in a namespace but events and metrics, as `kind.group/name`."""
        kinds = [
            kind for kind in self.list_kinds(namespaced=True) if not re.match(r"events|pods\.metrics", kind)
        ]
        return set(self.call("get", ",".join(kinds), "-n", namespace, "-o", "name").split())

    def wait_until_gone(self, kind: str, namespace: str, selector: str = "") -> None:
        """Wait until there is none of a kind."""
        what = f"{kind} of {namespace} are gone"
        wait_until(lambda: not self.fetch_all(kind, namespace, selector), _PATIENCE_S, what, _LOOK_S)

    def _remove_at_last(self, namespace: str) -> None:
        """Remove a namespace; a call may fail for a moment where the machine is busy."""
        for _ in range(_REMOVALS - 1):
            try:
                self._remove(namespace)
            except KubectlError:
                time.sleep(_REMOVAL_PAUSE_S)
            else:
                return
        self._remove(namespace)

    def _remove(self, namespace: str) -> None:
        for release in self._call_helm(
            "list", "--short", namespace=namespace
        ).split():  # those that a test has left
            self._call_helm("uninstall", release, namespace=namespace)
        everything = "deployments,statefulsets,pods,persistentvolumeclaims"
        self.call("delete", everything, "--all", "-n", namespace, "--grace-period=1")
        self.wait_until_gone("pods", namespace)
        kept = [
            volume["metadata"]["name"]
            for volume in self.fetch_all("persistentvolumes")
            if volume["spec"].get("claimRef", {}).get("namespace") == namespace
            and volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
        ]
        if kept:
            self._empty(namespace, kept)
        for volume in kept:
            self._set_claim(volume, None)
        self.call("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")

    def _call_helm(self, *arguments: str, namespace: str) -> str:
        return _call(["helm", *arguments, "--kube-context", self.context, "--namespace", namespace])

    def _set_claim(self, volume: str, claim: Object | None) -> None:
        change = {"spec": {"claimRef": claim}}
        self.call(
            "patch", "persistentvolume", volume, "--type=merge", "--patch-file=/dev/stdin", document=change
        )

    def _empty(self, namespace: str, kept: Sequence[str]) -> None:
        """Empty volumes that stay when their claims go, for whoever gets them next."""
        for volume in kept:
            spec = self.fetch("persistentvolume", volume, "")["spec"]
            self._set_claim(volume, None)
            self._set_claim(volume, {"name": volume, "namespace": namespace})
            claim = {
                "accessModes": spec["accessModes"],
                "storageClassName": spec.get("storageClassName", ""),
                "volumeName": volume,
                "resources": {"requests": spec["capacity"]},
            }
            metadata = {"name": volume, "namespace": namespace}
            self.apply(
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim}
            )
        command = ["sh", "-c", "find /volumes -mindepth 2 -depth -delete 2>/dev/null; true"]
        mounts = [{"name": volume, "mountPath": f"/volumes/{volume}"} for volume in kept]
        containers = [
            build_container(f"user-{user}", command, user=user) | {"volumeMounts": mounts}
            for user in _WRITERS
        ]
        volumes = [{"name": volume, "persistentVolumeClaim": {"claimName": volume}} for volume in kept]
        self.apply(build_pod("sweep", namespace, containers, volumes=volumes))
        self.wait_for_end("sweep", namespace)
        self.call("delete", "pods,persistentvolumeclaims", "--all", "-n", namespace, "--grace-period=1")

    def wait_for_end(self, pod: str, namespace: str) -> str:
        """Wait until a pod has ended; what it wrote."""

        def has_ended() -> bool:
            return str(self.fetch("pod", pod, namespace)["status"]["phase"]) in {"Succeeded", "Failed"}

        wait_until(has_ended, _PATIENCE_S, f"{pod} has ended", _LOOK_S)
        return self.call("logs", pod, "-n", namespace, "--all-containers")

    def wait_for_line(self, words: str, pod: str, namespace: str) -> None:
        """Wait until the first container of a pod writes a line with words; both have the same name."""

        def is_written() -> bool:
            # Before a container is there, reading what it wrote fails, each time with another message.
            has_started = not {"running", "terminated"}.isdisjoint(self.fetch_state(pod, namespace))
            return has_started and words in self.call("logs", pod, "-n", namespace, "-c", pod)

        wait_until(is_written, _PATIENCE_S, f"{pod} writes {words!r}", _LOOK_S)

    def fetch_state(self, pod: str, namespace: str) -> Object:
        """The state of the first container of a pod, as `{"running": …}`; empty until it is known."""
        statuses = self.fetch("pod", pod, namespace)["status"].get("containerStatuses", ())
        return next((each["state"] for each in statuses if each["name"] == pod), {})


def _call(command: Sequence[str], given: str | None = None) -> str:
    # A copy of the environment: another thread may change it just then, and execve would fail (EFAULT).
    environment = dict(os.environ)
    done = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KubectlError(done.stderr.strip())
    return done.stdout


def is_ready(pod: Object) -> bool:
    """Whether it says so."""
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def build_container(name: str, command: Sequence[str], *, user: int = 10001, image: str = "") -> Object:
    """A container that the restricted standard lets in, with Python in it unless another image is named."""
    return {
        "name": name,
        "image": image or f"localhost/oku/oku:{yaml.safe_load(_CHART.read_text())['appVersion']}",
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": user,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def build_pod(
    name: str,
    namespace: str,
    containers: Sequence[Object],
    *,
    volumes: Sequence[Object] = (),
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A pod that runs once."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": list(containers),
            "volumes": list(volumes),
        },
    }
