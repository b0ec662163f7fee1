"""From nothing to ready, and what is refused on the way."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.kubernetes.cluster import Cluster, KubectlError
from tests.kit.kubernetes.kubernetes_schemas import LOCATION, write_schemas
from tests.kit.kubernetes.release import CHART, ROOT, Release

VALUE_FILES = sorted((ROOT / "k8s" / "values").glob("*.yaml"))
_RESOURCES_OF_OTHERS = "ServiceMonitor,PrometheusRule"


@pytest.fixture(scope="module")
def schemas(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Schemas of all kinds that the cluster knows."""
    folder = tmp_path_factory.mktemp("schemas")
    write_schemas(json.loads(cluster.call("get", "--raw", "/openapi/v2")), folder)
    return folder


@pytest.fixture(scope="module")
def empty(cluster: Cluster) -> Iterator[str]:
    """A namespace in which nothing is installed."""
    with cluster.make_namespace() as namespace:
        yield namespace


def test_all_pods_are_ready_under_the_restricted_standard(release: Release) -> None:
    """Coordinator, Valkey and Loki run; the namespace lets in no other pods."""
    namespace = release.cluster.fetch("namespace", release.namespace, "")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for component in ("coordinator", "valkey", "loki"):
        assert len(release.list_ready(component)) == 1


@pytest.mark.parametrize(
    ("component", "program", "uid"), [("coordinator", "oku", 10001), ("valkey", "valkey-server", 999)]
)
def test_a_process_is_pid_1_of_its_container_and_is_not_root(
    release: Release, component: str, program: str, uid: int
) -> None:
    """Signals reach the process, and it has no capability."""
    [pod] = release.list_ready(component)
    assert release.exec(pod, "cat", "/proc/1/comm").strip() == program
    status = dict(line.split(":", 1) for line in release.exec(pod, "cat", "/proc/1/status").splitlines())
    assert status["Uid"].split() == [str(uid)] * 4
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1"


@pytest.mark.parametrize("component", ["coordinator", "valkey"])
def test_a_process_can_write_to_its_volumes_only(release: Release, component: str) -> None:
    """The rest of its file system is read-only."""
    [pod] = release.list_ready(component)
    with pytest.raises(KubectlError, match="Read-only file system"):
        release.exec(pod, "touch", "/opt/here", "/usr/here", "/here")
    release.exec(pod, "touch", "/data/here")
    release.exec(pod, "rm", "/data/here")


def test_helm_test_passes(release: Release) -> None:
    """`helm test` kills a worker of a run, and the account balances."""
    said = release.test()
    assert "Phase:          Succeeded" in said


def test_scaling_may_be_turned_off_and_on(release: Release) -> None:
    """Without scaling, workers are there all the time and the coordinator starts without rights."""
    release.upgrade("--set=scaling.enabled=false", "--set=scaling.restrictPatches=false")
    release.wait_for_pods("workers", 2)
    release.oku("run", "--requests", "1000", "--quiet")
    release.upgrade()
    release.oku("run", "--requests", "1000", "--workers", "1", "--servers", "1", "--quiet")


def test_an_upgrade_restarts_the_pods_whose_secret_has_changed(release: Release) -> None:
    """A Secret that was deleted is generated anew; all who read it can work together again, others go on."""
    parts = ("valkey", "coordinator", "loki")
    before = list_uids(release, *parts)
    release.cluster.call("delete", "secret", f"{release.name}-valkey", "-n", release.namespace)
    release.upgrade()
    changed = list_uids(release, *parts)
    assert [old == new for old, new in zip(before, changed, strict=True)] == [False, False, True]
    release.upgrade()
    assert list_uids(release, *parts) == changed


def list_uids(release: Release, *components: str) -> list[str]:
    """The uid of the only pod of each."""
    return [pod["metadata"]["uid"] for component in components for pod in release.fetch_pods(component)]


@pytest.mark.parametrize("values", VALUE_FILES, ids=lambda path: path.stem)
def test_helm_finds_no_fault(values: Path) -> None:
    """`helm lint --strict` accepts the chart with each file of values."""
    command = ["helm", "lint", "--strict", "--quiet", "--kube-version", "1.30.0", *_name(values), str(CHART)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", VALUE_FILES, ids=lambda path: path.stem)
def test_objects_have_the_fields_that_the_cluster_knows(schemas: Path, values: Path) -> None:
    """With the schemas of the cluster, kubeconform accepts what each file of values gives."""
    check(schemas, _template(*_name(values)))


@pytest.mark.parametrize("flavour", ["laptop", "production"])
def test_plain_manifests_have_the_fields_that_the_cluster_knows(schemas: Path, flavour: str) -> None:
    """Manifests for people without Helm pass kubeconform, too."""
    check(schemas, (ROOT / "k8s" / "plain" / flavour / "oku.yaml").read_text())


def test_a_wrong_field_is_found(schemas: Path) -> None:
    """The check of fields can fail."""
    wrong = _template(*_name(VALUE_FILES[0])).replace("terminationGracePeriodSeconds", "gracePeriod")
    with pytest.raises(AssertionError, match="gracePeriod"):
        check(schemas, wrong)


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("replicas=3", "additional properties 'replicas' not allowed"),
        ("workers.graceSeconds=soon", "workers/graceSeconds"),
        ("scaling.idle=soon", "scaling.idle: soon is not a duration"),
        ("valkey.enabled=false", "set broker.external.url or broker.external.existingSecret"),
        ("scaling.defaultWorkers=9", "scaling.defaultWorkers is more than scaling.maxWorkers"),
    ],
)
def test_invalid_values_are_refused_and_leave_nothing_behind(
    cluster: Cluster, empty: str, flag: str, said: str
) -> None:
    """The schema refuses them, or a sentence that says what to do."""
    before = cluster.fetch_objects(empty)
    with pytest.raises(AssertionError, match=said):
        Release(cluster, empty).install(f"--set={flag}")
    assert cluster.fetch_objects(empty) == before


def check(schemas: Path, manifests: str) -> None:
    """Let kubeconform look at manifests."""
    command = [
        "kubeconform", "-strict", "-output", "json", "-summary", "-skip", _RESOURCES_OF_OTHERS,
        "-schema-location", f"{schemas}/{LOCATION}",
    ]  # fmt: skip
    done = subprocess.run(command, input=manifests, capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0, "\n".join(f"{each['name']}: {each['msg']}" for each in found["resources"])
    assert found["summary"]["valid"] > 0


def _template(*flags: str) -> str:
    command = ["helm", "template", "oku", str(CHART), "--kube-version", "1.30.0", *flags]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _name(values: Path) -> list[str]:
    return ["--values", str(values)]
