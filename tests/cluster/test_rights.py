"""Who may reach what, and do what."""

import secrets
from collections.abc import Iterator

import pytest
from tests.kit.kubernetes.cluster import Cluster, KubectlError, build_container, build_pod
from tests.kit.kubernetes.release import Release

_LISTEN = "import socket, time; s = socket.create_server(('0.0.0.0', 9000)); time.sleep(600)"
_REACH = """
import socket, sys
for address in sys.argv[1:]:
    host, port = address.rsplit(':', 1)
    try:
        socket.create_connection((host, int(port)), 4).close()
        print(address, 'reached')
    except OSError as error:
        print(address, 'not reached')
"""
_READ_SECRETS = """
import ssl, urllib.error, urllib.request
folder = '/var/run/secrets/kubernetes.io/serviceaccount'
token, namespace = open(f'{folder}/token').read(), open(f'{folder}/namespace').read()
request = urllib.request.Request(
    f'https://kubernetes.default.svc/api/v1/namespaces/{namespace}/secrets',
    headers={'Authorization': f'Bearer {token}'},
)
try:
    urllib.request.urlopen(request, context=ssl.create_default_context(cafile=f'{folder}/ca.crt'))
    print('read')
except urllib.error.HTTPError as error:
    print(error.code)
"""
_COST = "controller.kubernetes.io/pod-deletion-cost"


@pytest.fixture(scope="module")
def stranger(cluster: Cluster) -> Iterator[str]:
    """A namespace that has nothing to do with the release."""
    with cluster.make_namespace() as namespace:
        yield namespace


@pytest.fixture(scope="module")
def is_enforced(cluster: Cluster, stranger: str) -> bool:
    """Whether the network of the cluster enforces policies: a pod that nobody may reach is not reached."""
    listening = build_container("listen", ["python", "-c", _LISTEN])
    cluster.apply(build_pod("closed", stranger, [listening], labels={"closed": "yes"}))
    spec = {"podSelector": {"matchLabels": {"closed": "yes"}}, "policyTypes": ["Ingress"], "ingress": []}
    metadata = {"name": "closed", "namespace": stranger}
    cluster.apply(
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}
    )
    cluster.call("wait", "pod/closed", "-n", stranger, "--for=condition=Ready", "--timeout=60s")
    address = cluster.fetch("pod", "closed", stranger)["status"]["podIP"]
    return reach(cluster, stranger, f"{address}:9000") == {f"{address}:9000": "not reached"}


def test_a_stranger_reaches_nothing(
    cluster: Cluster,
    release: Release,
    stranger: str,
    is_enforced: bool,  # noqa: FBT001  # pytest passes fixtures so
) -> None:
    """A pod of another namespace reaches neither the API nor files of runs nor Valkey nor Loki.

    Where the network of the cluster enforces no policy at all, everything is reached: there the test checks
    the policies, which let in only pods of the release and those with its label.
    """
    services = {"coordinator": 8700, "files": 8701, "valkey": 6379, "loki": 3100}
    addresses = [f"oku-{name}.{release.namespace}.svc:{port}" for name, port in services.items()]
    reached = reach(cluster, stranger, *addresses)
    if is_enforced:
        assert reached == dict.fromkeys(addresses, "not reached")
        return
    assert reached == dict.fromkeys(addresses, "reached"), "the check of the network is wrong"
    policies = {
        each["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: each["spec"]
        for each in cluster.fetch_all("networkpolicies", release.namespace)
    }
    ports = {"coordinator": {8700, 8701}, "valkey": {6379}, "loki": {3100}}
    for part, open_ports in ports.items():
        assert "Ingress" in policies[part]["policyTypes"]
        for rule in policies[part]["ingress"]:
            assert {each["port"] for each in rule["ports"]} <= open_ports
            assert all(set(peer) == {"podSelector"} for peer in rule["from"])
            assert all(is_of(release, peer["podSelector"]["matchLabels"]) for peer in rule["from"])
    components = {"coordinator", "workers", "servers", "valkey", "loki"}
    assert set(policies) == components


def test_a_call_without_the_token_is_refused(release: Release) -> None:
    """So is a call with another token; health and metrics are open."""
    with release.open_api() as api:
        assert api.call("GET", "/api/runs", token="")[0] == 401
        assert api.call("GET", "/api/runs", token=secrets.token_hex(20))[0] == 401
        assert api.call("POST", "/api/runs", {"requests": 1}, token="")[0] == 401
        assert api.call("GET", "/api/runs")[0] == 200


def test_a_call_of_valkey_without_the_password_is_refused(release: Release) -> None:
    """A pod that may reach Valkey is refused as well."""
    [pod] = release.list_ready("coordinator")
    script = (
        "import socket; s = socket.create_connection(('oku-valkey', 6379), 4); "
        "s.sendall(b'PING\\r\\n'); print(s.recv(100))"
    )
    said = release.exec(pod, "python", "-c", script)
    assert "NOAUTH" in said


def test_the_coordinator_cannot_read_secrets(release: Release) -> None:
    """The token of its pod gives no right to read Secrets."""
    [pod] = release.list_ready("coordinator")
    said = release.exec(pod, "python", "-c", _READ_SECRETS)
    assert said.strip() == "403"


def test_the_coordinator_has_the_rights_that_it_needs_and_no_others(release: Release) -> None:
    """It reads and scales two Deployments, and reads and annotates pods."""
    allowed = {
        "get deployments.apps/oku-workers",
        "get deployments.apps/oku-servers",
        "get deployments.apps/oku-workers --subresource=scale",
        "patch deployments.apps/oku-workers --subresource=scale",
        "patch deployments.apps/oku-servers --subresource=scale",
        "list pods",
        "patch pods",
    }
    denied = {
        "get secrets", "list secrets", "get configmaps", "create pods", "delete pods", "create pods/exec",
        "get deployments.apps/oku-coordinator",
        "patch deployments.apps/oku-workers", "delete deployments.apps/oku-workers",
        "patch deployments.apps/oku-coordinator --subresource=scale", "list deployments.apps",
        "list nodes", "create serviceaccounts/token", "impersonate users",
    }  # fmt: skip
    assert {question for question in allowed | denied if can(release, question)} == allowed


def test_other_pods_have_no_token(release: Release) -> None:
    """Valkey and Loki have no token of a service account."""
    for component in ("valkey", "loki"):
        [pod] = release.fetch_pods(component)
        mounts = [mount for each in pod["spec"]["containers"] for mount in each["volumeMounts"]]
        assert not [mount for mount in mounts if "serviceaccount" in mount["mountPath"]]


def test_the_coordinator_may_change_the_deletion_cost_of_a_pod_and_nothing_else(release: Release) -> None:
    """`scaling.restrictPatches` holds it down to that."""
    release.scale("workers", 1)
    release.wait_for_pods("workers", 1)
    [pod] = release.list_ready("workers")
    patch(release, pod, {"metadata": {"annotations": {_COST: "5"}}})
    found = release.cluster.fetch("pod", pod, release.namespace)
    assert found["metadata"]["annotations"][_COST] == "5"
    changes: list[dict[str, object]] = [
        {"metadata": {"annotations": {"other": "5"}}},
        {"metadata": {"labels": {"app.kubernetes.io/component": "servers"}}},
        {"metadata": {"finalizers": ["example.com/never"]}},
        {"metadata": {"ownerReferences": None}},
        {"spec": {"activeDeadlineSeconds": 1}},
    ]
    for change in changes:
        with pytest.raises(KubectlError, match="The coordinator may"):
            patch(release, pod, change)
    [other] = release.list_ready("valkey")
    with pytest.raises(KubectlError, match="its own workers only"):
        patch(release, other, {"metadata": {"annotations": {_COST: "5"}}})
    release.scale("workers", 0)


def reach(cluster: Cluster, namespace: str, *addresses: str) -> dict[str, str]:
    """Which of some addresses a pod of a namespace reaches."""
    cluster.apply(
        build_pod("reach", namespace, [build_container("reach", ["python", "-c", _REACH, *addresses])])
    )
    said = cluster.wait_for_end("reach", namespace)
    cluster.call("delete", "pod", "reach", "-n", namespace)
    return dict(line.split(" ", 1) for line in said.splitlines())


def is_of(release: Release, labels: dict[str, str]) -> bool:
    """Whether labels select pods of a release only, or those that are let in by its name."""
    return release.name in {labels.get("app.kubernetes.io/instance"), labels.get("oku/client")}


def can(release: Release, question: str) -> bool:
    """Whether the coordinator may do something."""
    try:
        return release.cluster.call("auth", "can-i", *question.split(), *_build_identity(release)) == "yes\n"
    except KubectlError:
        return False


def patch(release: Release, pod: str, change: dict[str, object]) -> None:
    """Change a pod as the coordinator."""
    release.cluster.call(
        "patch", "pod", pod, "--type=merge", "--patch-file=/dev/stdin", *_build_identity(release),
        document=change,
    )  # fmt: skip


def _build_identity(release: Release) -> list[str]:
    account = f"system:serviceaccount:{release.namespace}:{release.name}-coordinator"
    return ["-n", release.namespace, f"--as={account}"]
