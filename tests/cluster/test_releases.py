"""Releases beside each other."""

import concurrent.futures
from collections.abc import Iterator

import pytest
from tests.kit.kubernetes.cluster import ANY_USER, Cluster
from tests.kit.kubernetes.platform_values import INGRESS, INSTALLABLE, PODS
from tests.kit.kubernetes.release import Release
from tests.kit.runs.account import assert_completed
from tests.kit.user_code import run_code

_VALUES = {"loki.enabled": False, "grafana.sidecar.datasource": False}
"""Three of them at once are many pods for a small node."""
_PLATFORM = {**INSTALLABLE, "allowUserCode": True, "scaling.idle": "10m", "scaling.minServers": 1}
"""Its pods stay, for tests that look at them."""
_COMPONENTS = ("coordinator", "workers", "servers", "valkey")
_LOOK = """
import os

async def scenario(index):
    assert os.geteuid() == USER
    try:
        open("/var/run/secrets/kubernetes.io/serviceaccount/token").close()
    except PermissionError:
        return
    raise RuntimeError("user code reads the token of its pod")
""".replace("USER", str(ANY_USER))
_REQUESTS = 20_000
_FLAGS = ("--requests", str(_REQUESTS), "--workers", "1", "--servers", "1")


@pytest.fixture(scope="module")
def releases(cluster: Cluster) -> Iterator[list[Release]]:
    """Two in one namespace, and in another one of a platform team with wishes."""
    with cluster.make_namespace() as here, cluster.make_namespace() as there:
        sites = [(here, "oku", {}), (here, "oku-two", {}), (there, "oku", _PLATFORM)]
        releases = [Release(cluster, namespace, name, _VALUES | more) for namespace, name, more in sites]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(Release.install, releases))
        yield releases


def test_releases_do_not_touch_each_other(releases: list[Release]) -> None:
    """They have their own workers and their own tokens."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        summaries = list(pool.map(lambda release: release.run(*_FLAGS), releases))
    assert len({release.fetch_token() for release in releases}) == len(releases)
    for release, summary in zip(releases, summaries, strict=True):
        assert_completed(summary)
        assert summary["servers"] == {"served": _REQUESTS}
        workers = {worker["name"] for worker in summary["workers"]}
        assert all(name.startswith(f"{release.name}-workers-") for name in workers)
        with release.open_api() as api:
            assert [run["run"] for run in api.list_runs()] == [summary["run"]]
    all_workers = [worker["name"] for summary in summaries for worker in summary["workers"]]
    assert len(set(all_workers)) == len(all_workers)

    first, second, third = releases
    first.uninstall()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for summary in pool.map(lambda release: release.run(*_FLAGS), (second, third)):
            assert_completed(summary)
    with pytest.raises(AssertionError, match="there is no release oku of Oku"):
        first.oku("runs")


def test_each_pod_of_a_release_has_what_its_platform_asks_for(releases: list[Release]) -> None:
    """The runs above went well as a user without a name, beside extra containers, variables and accounts."""
    release = releases[2]
    with release.open_api() as api:
        summary = run_code(api, {"scenario.py": _LOOK}, 120, requests=4, users=1, workers=1)
    assert summary["outcomes"]["ok"] == 4, summary["failures"]
    for component in _COMPONENTS:
        [pod, *_] = release.list_ready(component)
        status = dict(line.split(":", 1) for line in release.exec(pod, "cat", "/proc/1/status").splitlines())
        assert status["Uid"].split() == [str(ANY_USER)] * 4
        assert status["Gid"].split() == ["0"] * 4
        assert "shop.example.com" in release.exec(pod, "cat", "/etc/hosts")
        assert "ndots:2" in release.exec(pod, "cat", "/etc/resolv.conf")
        environment = release.exec(pod, "env").splitlines()
        url = f"http://oku-coordinator.{release.namespace}.svc:8700"
        assert {"TZ=UTC", f"EXTRA_coordinator={url}"} <= set(environment)
        spec = release.cluster.fetch("pod", pod, release.namespace)["spec"]
        assert spec["serviceAccountName"] == f"oku-{component}"
        assert [each["name"] for each in spec["containers"]][1:] == ["beside"]
        assert [each["name"] for each in spec["initContainers"]] == ["first"]


def test_what_stands_beside_the_pods_is_what_the_platform_asked_for(releases: list[Release]) -> None:
    """The way in, the budget that makes a drain wait, the account of a role, and objects of one's own."""
    release = releases[2]
    fetch = release.cluster.fetch
    [rule] = fetch("ingress", "oku-coordinator", release.namespace)["spec"]["rules"]
    assert rule["host"] in INGRESS["hosts"]
    budget = fetch("poddisruptionbudget", "oku-coordinator", release.namespace)
    assert budget["status"]["disruptionsAllowed"] == 0
    account = fetch("serviceaccount", "oku-workers", release.namespace)
    assert account["metadata"]["annotations"]["example.com/role"] == "load"
    assert fetch("configmap", "oku-text", release.namespace)
    workers = fetch("deployment", "oku-workers", release.namespace)["spec"]["template"]["spec"]
    limits = {each["name"]: each.get("emptyDir", {}).get("sizeLimit") for each in workers["volumes"]}
    assert limits == {**PODS["sizeLimits"], "run-files": "3Gi", "shared": "1Mi"}
