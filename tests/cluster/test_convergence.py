"""Nothing of the chart is stored by the API server differently than it was rendered."""

import subprocess
from typing import Any

import pytest
import yaml
from tests.kit.kubernetes.cluster import Cluster
from tests.kit.kubernetes.platform_values import INGRESS, INSTALLABLE, OBJECTS
from tests.kit.kubernetes.release import Release

_TOO_MUCH = {"requests": {"cpu": "1000"}, "limits": {"memory": "1024Mi"}}
"""More processors than a node has, so that no pod starts; the API server stores `1k` and `1Gi`."""
_MINE = {"existingSecret": "mine"}
_PEERS: list[dict[str, Any]] = [
    {"podSelector": {}},
    {"namespaceSelector": {"matchLabels": {}}},
    {"ipBlock": {"cidr": "10.0.0.0/8", "except": []}},
]
_EVERYTHING: dict[str, Any] = {
    "coordinator": {
        "token": _MINE, "resources": _TOO_MUCH, "keepRuns": 9, "keepFor": "30d",
        "service": {"type": "NodePort", "annotations": {"a": ""}},
        "persistence": {"size": "1024Mi"}, "kubeUsers": [{"kind": "Group", "name": "testers"}],
        "ingress": INGRESS, "maxUnavailable": 0,
    },
    "workers": {
        "resources": _TOO_MUCH, "filesDirs": ["/e"], "allowEnv": ["A"], "maxUnavailable": "50%",
        "pod": {
            "extraEnv": [{"name": "A", "value": ""}], "extraVolumes": [{"name": "e", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "e", "mountPath": "/e"}], "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "k", "operator": "Exists"}],
        },
    },
    "servers": {"resources": _TOO_MUCH, "autoscaling": {"enabled": True}},
    "valkey": {"password": _MINE, "resources": _TOO_MUCH},
    "loki": {"resources": _TOO_MUCH},
    "grafana": {"enabled": True, "admin": _MINE, "resources": _TOO_MUCH, "ingress": INGRESS},
    "pods": INSTALLABLE["pods"], "extraObjects": OBJECTS,
    "broker": {"messageKey": _MINE},
    "allowUserCode": True,
    "extraLabels": {"l": ""}, "extraAnnotations": {"a": ""}, "imagePullSecrets": [{"name": "p"}],
    "networkPolicy": {
        "targets": [{}, {"to": [], "ports": []}, {"to": _PEERS}], "apiClients": _PEERS, "lokiClients": _PEERS,
        "grafanaClients": _PEERS, "dns": {"to": _PEERS}, "kubernetesApi": ["10.0.0.1/32"],
    },
}  # fmt: skip
_OF_OTHERS: dict[str, Any] = {
    "image": {"tag": "nobody-has-it"},
    "scaling": {"enabled": False, "restrictPatches": False},
    "coordinator": {"token": _MINE, "persistence": {"enabled": False}},
    "broker": {"messageKey": _MINE, "external": {"url": "redis://127.0.0.1/3"}},
    "valkey": {"enabled": False},
    "loki": {
        "enabled": False,
        "external": {
            "url": "https://127.0.0.1", "tenant": "t", "auth": "basic", "existingSecret": "mine"
        },
    },
    "grafana": {"sidecar": {"datasource": False}},
}  # fmt: skip


def test_kubectl_diff_shows_nothing_after_a_run(release: Release) -> None:
    """Sizes that the coordinator has set, and Secrets that were generated, stay as they are."""
    release.oku("run", "--requests", "1000", "--workers", "2", "--servers", "1", "--quiet")
    assert release.count_wanted("workers") == 2
    assert_stored(release.cluster, release.namespace, release.fetch_manifest())
    assert_stored(release.cluster, release.namespace, release.render())


@pytest.mark.parametrize(
    ("values", "obstacle"),
    [(_EVERYTHING, "Insufficient cpu"), (_OF_OTHERS, "ErrImagePull")],
    ids=["everything", "of-others"],
)
def test_kubectl_diff_shows_nothing_with_any_values(
    cluster: Cluster, values: dict[str, Any], obstacle: str
) -> None:
    """Both manifests agree: the installed one, and one that is rendered again. No pod of these starts, which
    `oku --kube` explains.
    """
    with cluster.make_namespace() as namespace:
        keys = (
            "token",
            "message-key",
            "coordinator-password",
            "workers-password",
            "user",
            "password",
            "username",
        )
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "mine", "namespace": namespace},
                "stringData": dict.fromkeys(keys, "of-the-tests-0123456789"),
            }
        )
        release = Release(cluster, namespace, values=values)
        release.install("--wait=false")
        assert_stored(cluster, namespace, release.fetch_manifest())
        assert_stored(cluster, namespace, release.render())
        with pytest.raises(
            AssertionError, match=rf"the coordinator of release oku is not running: .*{obstacle}"
        ):
            release.oku("runs")


def assert_stored(cluster: Cluster, namespace: str, manifest: str) -> None:
    """`kubectl diff` shows nothing, and ends with 0 for that: 1 means a difference."""
    assert len(list(yaml.safe_load_all(manifest))) > 10
    done = subprocess.run(
        cluster.build_command("diff", "-n", namespace, "-f", "-"),
        input=manifest, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
