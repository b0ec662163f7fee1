import os
import signal
import sys
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.unit.cli.kubectl_on_path import KubectlOnPath, find_forwards, wait_until

from oku_cli.remote import tunnel as tunnel_module
from oku_cli.remote.endpoint import UnreachableError
from oku_cli.remote.kube import KubeEndpoint

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
                "errors": {"port-forward": PENDING, "get events": "Error from server (Forbidden): events"},
            },
            "its pod is Pending (kubectl describe -n n pod c shows more)",
        ),
        ({"coordinator deployments": [REFUSED]}, QUOTA),
        (
            {"coordinator deployments": [DEPLOYMENT | {"spec": {"replicas": 0}}]},
            "it is scaled to 0 (kubectl scale -n n deployment/c --replicas=1 starts it)",
        ),
    ],
    ids=["image", "cpu", "secret", "crash-loop", "crash", "volume", "creating", "no-events", "quota", "none"],
)
async def test_a_coordinator_that_does_not_run_is_explained(
    kubectl: KubectlOnPath, known: dict[str, Any], obstacle: str
) -> None:
    """One line says what Kubernetes knows, in place of what kubectl says of the port."""
    kubectl.set(**{"errors": {"port-forward": PENDING}} | known)
    with pytest.raises(UnreachableError) as caught:
        await enter(KubeEndpoint())
    assert str(caught.value) == NOT_RUNNING + obstacle


@pytest.mark.parametrize(
    "known",
    [
        {"coordinator pods": []},
        {"coordinator pods": ["?"]},
        {"coordinator pods": [build_pod("c", **wait_for(**BACK_OFF))], "hidden": "get pods"},
        {"coordinator deployments": [REFUSED], "hidden": "get deployments"},
        {"coordinator deployments": [DEPLOYMENT]},
    ],
    ids=["nothing", "odd", "hidden-pods", "hidden-deployment", "a-moment"],
)
async def test_what_kubernetes_does_not_say_is_left_to_kubectl(
    kubectl: KubectlOnPath, known: dict[str, Any]
) -> None:
    """Without the right to see pods, too."""
    hidden = {known.pop("hidden"): "Error from server (Forbidden): no"} if "hidden" in known else {}
    kubectl.set(errors={"port-forward": PENDING} | hidden, **known)
    with pytest.raises(UnreachableError, match=r"no port can be forwarded .* Current status=Pending$"):
        await enter(KubeEndpoint())


async def test_a_port_that_leads_nowhere_is_explained(kubectl: KubectlOnPath) -> None:
    """A port can be forwarded to a pod whose container is between two crashes."""
    kubectl.set(**{"target": ["127.0.0.1", 1], "coordinator pods": [build_pod("c", **CRASHED)]})
    with pytest.raises(UnreachableError) as caught:
        await enter(KubeEndpoint())
    assert (
        str(caught.value)
        == f"{NOT_RUNNING}OOMKilled: exit code 137 (kubectl logs -n n --previous c shows why)"
    )


async def test_a_coordinator_that_runs_has_no_obstacle(kubectl: KubectlOnPath) -> None:
    """Nobody asks for pods then. Pods that were evicted stay in the list beside the one that runs."""
    evicted = build_pod("a", phase="Failed", reason="Evicted", message="The node was low on memory.")
    kubectl.set(**{"coordinator pods": [evicted, build_pod("b", phase="Running", podIP="10.0.0.1")]})
    await enter(KubeEndpoint())
    assert not [call for call in kubectl.calls if "get pods" in call]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
async def test_a_coordinator_that_goes_in_the_middle_is_explained(
    kubectl: KubectlOnPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is there as long as nothing answers."""
    monkeypatch.setattr(tunnel_module, "LOOK_S", 0.1)
    monkeypatch.setattr(tunnel_module, "FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(tunnel_module, "PROBE_TIMEOUT", aiohttp.ClientTimeout(total=0.5))
    async with KubeEndpoint().open() as endpoint:
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
    answers: list[tuple[dict[str, Any], str]] = [
        ({"valkey pods": [waiting]}, f"ErrImagePull (set valkey.image.registry {HINT})"),
        ({"valkey pods": [build_pod("v", "valkey", phase="Running", podIP="10.0.0.1")]}, ""),
        ({"valkey pods": []}, ""),
        ({"valkey pods": [waiting], "errors": {"get pods": "Error from server (Forbidden): no"}}, ""),
    ]

    async def probe(_: web.Request) -> web.Response:
        return web.Response(status=503, text="no broker\n")

    app = web.Application()
    app.add_routes([web.get("/readyz", probe)])
    async with TestServer(app) as server:
        kubectl.set(target=["127.0.0.1", server.port])
        for known, obstacle in answers:
            kubectl.set(**known)
            await enter(KubeEndpoint())
            said = f"oku: --kube: the broker of release demo is not running: {obstacle}\n" if obstacle else ""
            assert capsys.readouterr().err == said


async def enter(endpoint: KubeEndpoint) -> None:
    """Open and close the way to the coordinator."""
    async with endpoint.open():
        pass
