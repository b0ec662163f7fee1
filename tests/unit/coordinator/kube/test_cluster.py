from pathlib import Path

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import incluster_config
from tests.unit.coordinator.kube.twin import Kubernetes, refuse

from oku_coordinator.kube.cluster import Cluster, ClusterError, enter_cluster
from oku_core.errors import UserError


async def test_the_size_of_a_deployment_is_read_and_set(cluster: Cluster, kubernetes: Kubernetes) -> None:
    """Its `scale` says so, and how its pods are found."""
    scale = await cluster.fetch_scale("w")
    assert (scale.replicas, scale.selector) == (0, "app=w")
    await cluster.scale("w", 3)
    assert (await cluster.fetch_scale("w")).replicas == 3
    assert kubernetes.patches == [("scale", {"spec": {"replicas": 3}})]


async def test_pods_are_found_by_their_labels(cluster: Cluster, kubernetes: Kubernetes) -> None:
    """Only what matters of them is decoded."""
    kubernetes.add_pod("w", "w-1")
    kubernetes.add_pod("w", "w-2", ready=False)
    kubernetes.add_pod("s", "s-1")
    pods = await cluster.fetch_pods("app=w")
    assert [(pod.name, pod.is_ready, pod.is_running) for pod in pods] == [
        ("w-1", True, True),
        ("w-2", False, True),
    ]


async def test_it_is_found_out_why_no_pods_can_be_made(cluster: Cluster, kubernetes: Kubernetes) -> None:
    """It is one sentence; without the right to look the reason stays unknown, and nothing is wrong."""
    message = 'pods "w-1" is forbidden: exceeded quota: small, requested: cpu=1. Other words'
    kubernetes.conditions = [
        {"type": "Available", "status": "False", "message": "too few"},
        {"type": "ReplicaFailure", "status": "True", "message": message},
    ]
    assert await cluster.fetch_failure("w") == message.partition(". ")[0]
    kubernetes.conditions[1]["status"] = "False"
    assert await cluster.fetch_failure("w") == ""
    kubernetes.conditions = []
    assert await cluster.fetch_failure("w") == ""
    kubernetes.refusals = {"w": 403}
    assert await cluster.fetch_failure("w") == ""
    kubernetes.refusals = {"w": 500}
    with pytest.raises(ClusterError):
        await cluster.fetch_failure("w")


async def test_the_deletion_cost_of_a_pod_is_set(cluster: Cluster, kubernetes: Kubernetes) -> None:
    """It is a text, as all annotations are."""
    kubernetes.add_pod("w", "w-1")
    await cluster.set_cost("w-1", 100)
    [pod] = await cluster.fetch_pods("app=w")
    assert pod.cost == 100


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "Unauthorized"), (403, 'pods is forbidden: User "x"'), (409, "conflict"), (500, "etcd is away")],
)
async def test_a_refusal_is_told_with_its_reason(
    cluster: Cluster, kubernetes: Kubernetes, status: int, message: str
) -> None:
    """The error is one line and names the call."""
    kubernetes.failures.append(refuse(status, message))
    with pytest.raises(ClusterError, match=rf"^GET /apis/.*/deployments/w/scale: {status} .*: ") as caught:
        await cluster.fetch_scale("w")
    assert message in str(caught.value)
    assert caught.value.status == status


@pytest.mark.parametrize("answer", ["no JSON", "[]", '{"spec": {"replicas": "many"}, "status": {}}', "{}"])
async def test_an_answer_of_somebody_else_is_an_error(
    cluster: Cluster, kubernetes: Kubernetes, answer: str
) -> None:
    """A proxy may answer."""
    kubernetes.failures.append(web.Response(text=answer))
    with pytest.raises(ClusterError, match="the response is not from Kubernetes"):
        await cluster.fetch_scale("w")


async def test_a_refusal_without_a_reason_is_told_as_well(cluster: Cluster, kubernetes: Kubernetes) -> None:
    """A load balancer answers with a page."""
    kubernetes.failures.append(web.Response(text="<html>", status=503))
    with pytest.raises(ClusterError, match="503 Service Unavailable: no reason given"):
        await cluster.scale("w", 1)


async def test_nobody_waits_for_an_answer_that_does_not_come(
    kubernetes: Kubernetes, cluster: Cluster
) -> None:
    """The limit is for the whole call."""
    kubernetes.hang_s = 0.2
    hasty = Cluster("oku", cluster.configuration, timeout_s=0.05)
    with pytest.raises(ClusterError, match="TimeoutError"):
        await hasty.fetch_scale("w")
    await hasty.close()


async def test_an_api_that_is_away_is_an_error_of_one_line(unused_tcp_port: int) -> None:
    """It may be restarted at any time."""
    cluster = Cluster("oku", Configuration(host=f"http://127.0.0.1:{unused_tcp_port}"))
    with pytest.raises(ClusterError, match="Cannot connect"):
        await cluster.fetch_scale("w")
    await cluster.close()


def test_outside_a_pod_there_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is the user's mistake."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(
        UserError, match=r"^--kube-workers: this is not a pod with a service account: Service host"
    ):
        enter_cluster("oku")


async def test_a_pod_bears_the_token_of_its_service_account(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The token is read again when it has changed."""
    token, certificates = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first")
    certificates.write_text("none")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(certificates))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    configuration = enter_cluster("oku").configuration
    assert configuration.host == "https://10.0.0.1:443"
    assert configuration.api_key == {"BearerToken": "bearer first"}
    assert configuration.verify_ssl
