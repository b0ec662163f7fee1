"""The Job and the CronJob of docs/operations.md, whose pods and whose coordinator meet what pods meet.

Five Jobs share a release, whose queue begins their runs one after the other. Each meets one fault in the
middle of its run, because Kubernetes waits longer before each further pod of a Job.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from tests.kit.kubernetes.cluster import Object, build_container
from tests.kit.kubernetes.load_job import LoadJob, find_pod_template, read_manifests
from tests.kit.kubernetes.release import Release
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until

from oku_cli.exit_code import ExitCode

_REQUESTS = 20_000
"""Ten seconds at 100 in flight of 50 ms each; longer where the machine is slow."""
_JOB, _SECOND_JOB = "load-test", "load-test-again"
_FROM_CRON_JOB = ("load-test-1", "load-test-2", "load-test-3")
"""Of more that have completed, Kubernetes would delete the first ones."""
_UNMET = "load-test-unmet"
_PATIENCE_S = 120.0
_LOOK_S = 0.2
_OUT_OF_MEMORY = {"reason": "OOMKilled", "exitCode": 137}


@dataclass
class Scene:
    """What is made once for all tests.

    Attributes:
        release: the release.
        jobs: two Jobs as that of the page and three of its CronJob.
        unmet: a Job whose run misses a threshold.
        pods: by the names of the Jobs, the pod that met a fault.
    """

    release: Release
    jobs: Sequence[LoadJob]
    unmet: LoadJob
    pods: dict[str, str]

    def find_next(self) -> tuple[LoadJob, str]:
        """The next Job in the middle of its run, waited for, and its pod."""
        waiting = [job for job in self.jobs if job.name not in self.pods]
        wait_until(
            lambda: any(job.is_in_the_middle() for job in waiting), _PATIENCE_S, "a run goes on", _LOOK_S
        )
        job = next(job for job in waiting if job.is_in_the_middle())
        self.pods[job.name] = job.find_pod()
        return job, self.pods[job.name]


@pytest.fixture(scope="module")
def manifests(release: Release) -> dict[str, Object]:
    """What the page shows, by kind: as it is but for namespace, image and number of requests.

    The CronJob is suspended, lest its time comes meanwhile; Jobs are made from it by hand.
    """
    found = {each["kind"]: copy.deepcopy(each) for each in read_manifests()}
    for manifest in found.values():
        manifest["metadata"]["namespace"] = release.namespace
    for kind in ("Job", "CronJob"):
        [container] = find_pod_template(found[kind])["spec"]["containers"]
        container["image"] = build_container("", ())["image"]
    found["CronJob"]["spec"]["suspend"] = True
    change_spec(found["ConfigMap"], requests=_REQUESTS)
    return found


@pytest.fixture(scope="module")
def scene(release: Release, manifests: dict[str, Object]) -> Iterator[Scene]:
    """All Jobs at once: their runs wait in the queue of the release."""
    cluster, where = release.cluster, ("-n", release.namespace)
    made = list(build_objects(manifests))
    with release.open_api() as api:
        jobs = [LoadJob(release, api, name) for name in (_JOB, _SECOND_JOB, *_FROM_CRON_JOB)]
        unmet = LoadJob(release, api, _UNMET)
        try:
            for each in made:
                cluster.apply(each)
            for name in _FROM_CRON_JOB:
                cluster.call("create", "job", name, f"--from=cronjob/{_JOB}", *where)
            yield Scene(release, jobs, unmet, {})
        finally:
            for job in (*jobs, unmet):
                job.remove()
            for each in made:
                cluster.call("delete", each["kind"], each["metadata"]["name"], *where, "--ignore-not-found")


def build_objects(manifests: dict[str, Object]) -> Iterator[Object]:
    """What the page shows, a second Job, and one with a spec of its own, which has a threshold that fails."""
    yield from manifests.values()
    second, third, config_map = (copy.deepcopy(manifests[kind]) for kind in ("Job", "Job", "ConfigMap"))
    second["metadata"]["name"] = _SECOND_JOB
    third["metadata"]["name"] = config_map["metadata"]["name"] = _UNMET
    change_spec(config_map, requests=500, thresholds=["p50 < 1ms"])
    [volume] = find_pod_template(third)["spec"]["volumes"]
    volume["configMap"]["name"] = _UNMET
    yield from (second, config_map, third)


def change_spec(config_map: Object, **values: Any) -> None:
    """Give the spec of a ConfigMap other values."""
    spec = yaml.safe_load(config_map["data"]["load.yaml"])
    config_map["data"]["load.yaml"] = yaml.safe_dump(spec | values)


def test_the_coordinator_of_a_job_restarts(scene: Scene) -> None:
    """In the middle of a run; its pod waits, and so do those whose runs are in the queue."""
    scene.find_next()
    scene.release.replace_pod("coordinator")


def test_the_pod_of_a_job_is_evicted(scene: Scene) -> None:
    """By the Eviction API, in the middle of the run."""
    job, pod = scene.find_next()
    scene.release.evict_pod(pod)
    job.wait_until_lost(pod)
    assert job.is_in_the_middle()


def test_the_pod_of_a_job_is_deleted(scene: Scene) -> None:
    """By a user, in the middle of the run."""
    job, pod = scene.find_next()
    scene.release.delete_pod(pod)
    job.wait_until_lost(pod)
    assert job.is_in_the_middle()


def test_the_pod_of_a_job_runs_out_of_memory(scene: Scene) -> None:
    """The kernel kills the command in the middle of the run, without a signal before."""
    job, pod = scene.find_next()
    job.run_out_of_memory(pod)
    left = job.wait_until_lost(pod)
    assert left is not None
    [container] = left["status"]["containerStatuses"]
    assert container["state"]["terminated"].items() >= _OUT_OF_MEMORY.items()
    assert job.is_in_the_middle()


def test_the_node_of_a_job_is_drained(scene: Scene) -> None:
    """`kubectl drain` in the middle of the run; there may be no other node, so it is uncordoned again."""
    job, pod = scene.find_next()
    job.drain_node(pod)
    job.wait_until_lost(pod)
    assert job.is_in_the_middle()


def test_a_job_whose_run_misses_a_threshold_fails_at_once(scene: Scene) -> None:
    """One pod, no other try."""
    assert scene.unmet.wait_for_end() == ("Failed", "PodFailurePolicy")
    [pod] = scene.unmet.fetch_pods()
    [container] = pod["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == ExitCode.NOT_PASSED
    summary = scene.unmet.fetch_summary()
    assert_completed(summary)
    assert summary["verdict"] == "failed"


def test_each_job_has_made_one_run_and_ends_with_its_verdict(scene: Scene) -> None:
    """Each request was sent once, whatever happened to the pods."""
    for job in scene.jobs:
        assert job.wait_for_end() == ("Complete", "CompletionsReached"), job.name
        summary = job.fetch_summary()
        assert_completed(summary)
        assert (summary["requests"], summary["resent_at_most"]) == (_REQUESTS, 0)
        assert summary["verdict"] == "passed"


def test_disruptions_do_not_count_as_failures_of_a_job(scene: Scene) -> None:
    """Those that were evicted or drained do not; the pods that were deleted or out of memory do."""
    assert sorted(job.fetch_status().get("failed", 0) for job in scene.jobs) == [0, 0, 0, 1, 1]


def test_a_pod_ends_its_job_in_place_of_one_that_was_lost(scene: Scene) -> None:
    """It found the run by its key. Only a restart of the coordinator leaves the pod."""
    last = {job.name: job.find_succeeded() for job in scene.jobs}
    replaced = [name for name, pod in scene.pods.items() if last[name] != pod]
    assert len(replaced) == len(scene.jobs) - 1
    for name in replaced:
        log = scene.release.cluster.call("logs", last[name], "-n", scene.release.namespace)
        assert f"has the key {name}" in log
