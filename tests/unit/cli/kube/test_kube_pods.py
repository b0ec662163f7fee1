import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.unit.cli.kubectl_on_path import TOKEN, KubectlOnPath, find_forwards, wait_until

from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.kube import tunnel as tunnel_module
from oku_cli.kube.kube_endpoint import KubeEndpoint
from oku_cli.kube.kube_pods import KubePods
from oku_cli.kube.kubectl import Kubectl
from oku_core.errors import UserError

PENDING = "error: unable to forward port because pod is not running. Current status=Pending"
HINT = "of the chart to a registry that has the image and that nodes can pull from"
NOT_RUNNING = "--kube: the coordinator of release demo is not running: "
BACK_OFF = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "localhost/oku/oku:0.1.0"'}


def build_pod(name: str, component: str = "coordinator", **status: Any) -> dict[str, Any]:
    """A pod in the namespace `n`."""
    labels = {"app.kubernetes.io/component": component}
    return {"metadata": {"name": name, "namespace": "n", "labels": labels}, "status": status}


def wait_for(reason: str, message: str = "") -> dict[str, Any]:
    """The status of a pod whose container waits."""
    return {
        "phase": "Pending",
        "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}],
    }


class Answers(Kubectl):
    """A kubectl that knows the objects of each kind, by their component where they are selected by that.

    Args:
        known: the objects, or the error that asking for them raises.
    """

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known

    async def fetch(self, kind: str, selector: str, *_: str) -> list[dict[str, Any]]:
        """Those of the kind."""
        component = selector.partition("app.kubernetes.io/component=")[2].partition(",")[0]
        answer = self._known.get(f"{component} {kind}".strip(), [])
        if isinstance(answer, Exception):
            raise answer
        return list(answer)


READY = [{"type": "Ready", "status": "True"}]
CRASHED: dict[str, Any] = {
    "phase": "Running",
    "podIP": "10.0.0.1",
    "conditions": [{"type": "Ready", "status": "False"}],
    "containerStatuses": [
        {"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    ],
}
UNSCHEDULED: dict[str, Any] = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "message": "0/3 nodes are available: 3 Insufficient cpu. More.",
        }
    ],
}
EVENTS = [
    {"reason": "FailedMount", "message": "an older one", "lastTimestamp": "2026-02-01T17:00:00Z"},
    {
        "reason": "FailedMount",
        "message": 'MountVolume.SetUp failed for volume "message-key" : secret "mine" not found',
        "lastTimestamp": "2026-02-01T17:00:09Z",
    },
    {"reason": "FailedScheduling", "message": "0/3 nodes", "lastTimestamp": "2026-02-01T17:00:10Z"},
    {"reason": "Other", "message": "without a time", "lastTimestamp": None},
]
QUOTA = 'pods "c-1" is forbidden: exceeded quota: q, requested: pods=1'
DEPLOYMENT: dict[str, Any] = {"metadata": {"name": "c", "namespace": "n"}, "spec": {"replicas": 1}}
REFUSED = DEPLOYMENT | {
    "status": {
        "conditions": [
            {"type": "Available", "status": "False", "message": "?"},
            {"type": "ReplicaFailure", "status": "True", "message": QUOTA},
        ]
    }
}


@pytest.mark.parametrize(
    ("known", "obstacle"),
    [
        (
            {"coordinator pods": [build_pod("c", **wait_for(**BACK_OFF))]},
            f'ImagePullBackOff: Back-off pulling image "localhost/oku/oku:0.1.0" (set image.registry {HINT})',
        ),
        (
            {"coordinator pods": [build_pod("c", **UNSCHEDULED)]},
            "0/3 nodes are available: 3 Insufficient cpu",
        ),
        (
            {
                "coordinator pods": [
                    build_pod("c", **wait_for("CreateContainerConfigError", 'secret "s" not found'))
                ]
            },
            'CreateContainerConfigError: secret "s" not found',
        ),
        (
            {"coordinator pods": [build_pod("c", **wait_for("CrashLoopBackOff", "back-off 10s"))]},
            "CrashLoopBackOff: back-off 10s (kubectl logs -n n --previous c shows why)",
        ),
        (
            {"coordinator pods": [build_pod("c", **CRASHED)]},
            "OOMKilled: exit code 137 (kubectl logs -n n --previous c shows why)",
        ),
        (
            {"coordinator pods": [build_pod("c", **wait_for("ContainerCreating"))], "events": EVENTS},
            'MountVolume.SetUp failed for volume "message-key" : secret "mine" not found',
        ),
        (
            {"coordinator pods": [build_pod("c", **wait_for("ContainerCreating"))], "events": []},
            "its pod is Pending (kubectl describe -n n pod c shows more)",
        ),
        (
            {
                "coordinator pods": [build_pod("c", **wait_for("ContainerCreating"))],
                "events": UserError("forbidden"),
            },
            "its pod is Pending (kubectl describe -n n pod c shows more)",
        ),
        ({"coordinator deployments": [REFUSED]}, QUOTA),
        (
            {"coordinator deployments": [DEPLOYMENT | {"spec": {"replicas": 0}}]},
            "it is scaled to 0 (kubectl scale -n n deployment/c --replicas=1 starts it)",
        ),
        (
            {"coordinator deployments": UserError("forbidden")},
            "it has no pod (it may be restarting, or scaled to 0)",
        ),
    ],
    ids=[
        "image",
        "cpu",
        "secret",
        "crash-loop",
        "crash",
        "volume",
        "creating",
        "no-events",
        "quota",
        "none",
        "no-right",
    ],
)
async def test_a_coordinator_that_does_not_run_is_explained(known: dict[str, Any], obstacle: str) -> None:
    """One line says what Kubernetes knows."""
    assert await KubePods(Answers(known), "demo").explain() == obstacle


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"coordinator pods": ["?"]},
        {"coordinator pods": UserError("forbidden")},
        {"coordinator pods": UnreachableError("no answer")},
        {"coordinator deployments": [DEPLOYMENT]},
        {"coordinator pods": [build_pod("c", phase="Running", podIP="10.0.0.1", conditions=READY)]},
        {
            "coordinator pods": [
                build_pod("a", phase="Failed", reason="Evicted", message="The node was low on memory."),
                build_pod("b", phase="Running", podIP="10.0.0.1", conditions=READY),
            ]
        },
    ],
    ids=["nothing", "odd", "hidden", "silent", "a-moment", "ready", "evicted"],
)
async def test_what_kubernetes_does_not_say_stays_open(known: dict[str, Any]) -> None:
    """Nothing depends on it: without the right to see pods, too. Pods that were evicted stay in the list."""
    assert await KubePods(Answers(known), "demo").explain() == ""


async def test_a_port_that_cannot_be_forwarded_is_explained(kubectl: KubectlOnPath) -> None:
    """If Kubernetes does not say why, kubectl is quoted."""
    kubectl.set(errors={"port-forward": PENDING})
    with pytest.raises(UnreachableError, match=r"no port can be forwarded .* Current status=Pending$"):
        await enter(KubeEndpoint(token=TOKEN))
    kubectl.set(**{"coordinator pods": [build_pod("c", **UNSCHEDULED)]})
    with pytest.raises(UnreachableError) as caught:
        await enter(KubeEndpoint(token=TOKEN))
    assert str(caught.value) == f"{NOT_RUNNING}0/3 nodes are available: 3 Insufficient cpu"


async def test_a_port_that_leads_nowhere_is_explained(kubectl: KubectlOnPath) -> None:
    """A port can be forwarded to a pod whose container is between two crashes."""
    kubectl.set(**{"target": ["127.0.0.1", 1], "coordinator pods": [build_pod("c", **CRASHED)]})
    with pytest.raises(UnreachableError) as caught:
        await enter(KubeEndpoint(token=TOKEN))
    assert (
        str(caught.value)
        == f"{NOT_RUNNING}OOMKilled: exit code 137 (kubectl logs -n n --previous c shows why)"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
async def test_a_coordinator_that_goes_in_the_middle_is_explained(
    kubectl: KubectlOnPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is there as long as nothing answers."""
    monkeypatch.setattr(tunnel_module, "POLL_S", 0.1)
    monkeypatch.setattr(tunnel_module, "FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(tunnel_module, "PROBE_TIMEOUT", aiohttp.ClientTimeout(total=0.5))
    async with KubeEndpoint(token=TOKEN).open() as endpoint:
        kubectl.set(
            **{"errors": {"port-forward": PENDING}, "coordinator pods": [build_pod("c", **UNSCHEDULED)]}
        )
        os.kill(find_forwards(kubectl)[0], signal.SIGKILL)
        await wait_until(lambda: endpoint.find_trouble().endswith("3 Insufficient cpu"))
        with pytest.raises(UnreachableError) as caught:
            assert endpoint.url
        assert str(caught.value).endswith("does not answer: 0/3 nodes are available: 3 Insufficient cpu")
        kubectl.set(errors={})
        await wait_until(lambda: not endpoint.find_trouble())


async def test_a_broker_that_does_not_run_is_reported(
    kubectl: KubectlOnPath, capsys: pytest.CaptureFixture[str]
) -> None:
    """The coordinator answers without it, so that its runs can be seen; no run goes on."""
    waiting = build_pod("v", "valkey", **wait_for("ErrImagePull"))

    async def probe(_: web.Request) -> web.Response:
        return web.Response(status=503, text="no broker\n")

    app = web.Application()
    app.add_routes([web.get("/readyz", probe)])
    async with TestServer(app) as server:
        kubectl.set(**{"target": ["127.0.0.1", server.port], "valkey pods": [waiting]})
        await enter(KubeEndpoint(token=TOKEN))
    said = f"the broker of release demo is not running: ErrImagePull (set valkey.image.registry {HINT})"
    assert capsys.readouterr().err == f"oku: --kube: {said}\n"


async def test_a_broker_that_runs_or_is_not_seen_has_no_obstacle() -> None:
    """It may also be one of the user's, of which there are no pods."""
    running = build_pod("v", "valkey", phase="Running", podIP="10.0.0.1")
    for pods in ([running], [], UserError("forbidden"), ["?"]):
        assert await KubePods(Answers({"valkey pods": pods}), "demo").find_broker_obstacle() == ""


async def enter(endpoint: KubeEndpoint) -> None:
    """Open and close the way to the coordinator."""
    async with endpoint.open():
        pass
