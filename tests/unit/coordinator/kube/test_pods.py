import math
from typing import Any

import msgspec
import pytest

from oku_coordinator.kube.pods import (
    BUSY_COST,
    COST_ANNOTATION,
    SERVERS_WITHIN_S,
    Pod,
    PodReadiness,
    build_server_readiness,
    build_worker_readiness,
    find_cost_changes,
    is_enough,
)

RUNNING = {"phase": "Running", "podIP": "fd00::1"}


def build_pod(name: str, cost: str | None = None) -> Pod:
    """A pod as the API tells of it."""
    annotations = {} if cost is None else {"annotations": {COST_ANNOTATION: cost, "other": "x"}}
    return msgspec.convert({"metadata": {"name": name} | annotations}, Pod)


@pytest.mark.parametrize(
    ("status", "is_running", "is_ready"),
    [
        ({}, "no", "no"),
        ({"phase": "Pending", "podIP": "10.0.0.1"}, "no", "no"),
        ({"phase": "Running", "podIP": "10.0.0.1"}, "yes", "no"),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, "no", "no"),
        (RUNNING | {"conditions": [{"type": "Ready", "status": "True"}]}, "yes", "yes"),
        (RUNNING | {"conditions": [{"type": "Ready", "status": "False"}]}, "yes", "no"),
        (RUNNING | {"conditions": [{"type": "Other", "status": "True"}]}, "yes", "no"),
        ({"phase": "Failed", "podIP": "10.0.0.1"}, "no", "no"),
    ],
)  # fmt: skip
def test_a_pod_says_how_it_is_doing(status: dict[str, object], is_running: str, is_ready: str) -> None:
    """Phase, address and conditions decide."""
    pod = msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)
    assert (pod.is_running, pod.is_ready) == (is_running == "yes", is_ready == "yes")


@pytest.mark.parametrize(
    ("status", "ips"),
    [
        ({}, set()),
        ({"podIP": "10.0.0.1"}, {"10.0.0.1"}),
        ({"podIP": "10.0.0.1", "podIPs": None}, {"10.0.0.1"}),
        ({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}, {"10.0.0.1", "fd00::1"}),
    ],
    ids=["none-yet", "one", "old-cluster", "two-families"],
)
def test_a_pod_may_have_several_addresses(status: dict[str, object], ips: set[str]) -> None:
    """It may have one of each family."""
    assert msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod).ips == ips


UNSCHEDULED = {
    "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No "
    "preemption victims found for incoming pod.",
}  # fmt: skip


HINT = " (set image.registry of the chart to a registry that has the image and that nodes can pull from)"
"""What follows where the image cannot be pulled."""


def wait_for(reason: str, message: str = "") -> dict[str, object]:
    """The status of a container that waits."""
    return {"name": "worker", "state": {"waiting": {"reason": reason, "message": message}}}


def end(code: int, reason: str = "Error") -> dict[str, object]:
    """The status of a container that has ended."""
    return {"name": "ended", "state": {"terminated": {"exitCode": code, "reason": reason}}}


@pytest.mark.parametrize(
    ("status", "obstacle"),
    [
        ({}, ""),
        ({"phase": "Pending", "conditions": [UNSCHEDULED]}, "0/3 nodes are available: 3 Insufficient cpu"),
        ({"conditions": [{"type": "PodScheduled", "status": "False"}]}, "it has no node yet"),
        ({"conditions": [{"type": "PodScheduled", "status": "True", "message": "x"}]}, ""),
        ({"containerStatuses": [wait_for("ContainerCreating")]}, ""),
        ({"containerStatuses": [wait_for("PodInitializing")]}, ""),
        (
            {"containerStatuses": [wait_for("ImagePullBackOff", 'Back-off pulling image\n "x:1"')]},
            f'ImagePullBackOff: Back-off pulling image "x:1"{HINT}',
        ),
        ({"containerStatuses": [wait_for("CreateContainerConfigError", 'secret "s" not found.')]},
         'CreateContainerConfigError: secret "s" not found'),
        ({"containerStatuses": [wait_for("ErrImagePull")]}, f"ErrImagePull{HINT}"),
        ({"containerStatuses": [wait_for("ErrImageNeverPull")]}, f"ErrImageNeverPull{HINT}"),
        ({"containerStatuses": [wait_for("InvalidImageName")]}, f"InvalidImageName{HINT}"),
        ({"containerStatuses": [wait_for("ErrImagePull", "failed: " * 40)]},
         "ErrImagePull: " + "failed: " * 22 + "failed: …" + HINT),
        ({"containerStatuses": [{"state": {"running": {}}}, wait_for("CrashLoopBackOff", "back-off 10s")]},
         "CrashLoopBackOff: back-off 10s (kubectl logs --previous p -c worker shows why)"),
        ({"phase": "Failed", "reason": "SysctlForbidden", "message": "forbidden sysctl. More words."},
         "SysctlForbidden: forbidden sysctl"),
        ({"phase": "Running", "reason": "Odd", "message": "Odder"}, ""),
        (
            {
                "initContainerStatuses": [wait_for("ErrImagePull")],
                "containerStatuses": [wait_for("PodInitializing")],
            },
            f"ErrImagePull{HINT}",
        ),
        ({"initContainerStatuses": [end(0, "Completed")], "containerStatuses": [end(2)]},
         "Error: exit code 2 (kubectl logs p -c ended shows why)"),
        ({"containerStatuses": [end(137, "OOMKilled")]},
         "OOMKilled: exit code 137 (kubectl logs p shows why)"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on disk", "containerStatuses": [end(137)]},
         "Evicted: low on disk"),
    ],
)  # fmt: skip
def test_a_pod_says_what_keeps_it_from_running(status: dict[str, object], obstacle: str) -> None:
    """The obstacle is one line; what every pod goes through is not one."""
    pod = msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)
    assert pod.obstacle == obstacle


def test_the_image_to_set_is_that_of_the_component() -> None:
    """Only the components of Oku share an image; a command names the namespace where it is known."""
    for component, value in (("workers", "image"), ("valkey", "valkey.image"), ("loki", "loki.image")):
        metadata = {"name": "p", "labels": {"app.kubernetes.io/component": component}}
        status = {"containerStatuses": [wait_for("ErrImagePull")]}
        pod = msgspec.convert({"metadata": metadata, "status": status}, Pod)
        assert f"(set {value}.registry of the chart" in pod.obstacle
    status = {"containerStatuses": [wait_for("CrashLoopBackOff")]}
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "n"}, "status": status}, Pod)
    assert pod.obstacle == "CrashLoopBackOff (kubectl logs -n n --previous p shows why)"


def test_a_container_that_was_started_again_says_how_it_had_ended() -> None:
    """What ended well, or was never started again, has not crashed."""
    for last, crash in (
        (end(1), "Error: exit code 1 (kubectl logs --previous p shows why)"),
        (end(0, "Completed"), ""),
        ({"state": {}}, ""),
    ):
        status = {"containerStatuses": [{"state": {"running": {}}, "lastState": last["state"]}]}
        pod = msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)
        assert (pod.last_crash, pod.obstacle) == (crash, "")


def test_busy_workers_are_deleted_last() -> None:
    """What is right already is not patched; the busy ones come first, should there be no time for all."""
    pods = [
        build_pod("idle"),
        build_pod("idle-now", "100"),
        build_pod("busy"),
        build_pod("busy-still", "100"),
        build_pod("strange", "much"),
    ]
    held = {"busy": 1, "busy-still": 2, "no-pod": 2}
    changes = find_cost_changes(pods, held)
    assert changes == {"busy": BUSY_COST, "idle-now": 0, "strange": 0}
    assert next(iter(changes)) == "busy"


def pod_in(
    *, phase: str = "Running", ready: bool = True, waiting: str = "", reason: str = "", leaving: bool = False
) -> Pod:
    """A pod as the API tells of it."""
    status: dict[str, Any] = {
        "phase": phase,
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "reason": reason,
    }
    metadata = {"name": "p"} | ({"deletionTimestamp": "2026-02-01T17:05:12Z"} if leaving else {})
    if waiting:
        status["containerStatuses"] = [{"state": {"waiting": {"reason": waiting}}}]
    return msgspec.convert({"metadata": metadata, "status": status}, Pod)


def test_workers_are_there_when_they_run() -> None:
    """They have no probes; one that crashes again and again does not run, whatever its phase."""
    pods = [
        pod_in(ready=False),
        pod_in(phase="Pending"),
        pod_in(waiting="CrashLoopBackOff"),
    ]
    assert build_worker_readiness(pods, 4) == PodReadiness(
        1, 4, "CrashLoopBackOff (kubectl logs --previous p shows why)"
    )


def test_delay_servers_that_have_to_go_are_surplus() -> None:
    """They count before and after Kubernetes has deleted them; a terminating pod is never ready."""
    assert build_server_readiness([pod_in(), pod_in(), pod_in()], 1) == PodReadiness(3, 1, "", 2)
    assert build_server_readiness([pod_in(), pod_in(leaving=True)], 1) == PodReadiness(1, 1, "", 1)
    assert build_server_readiness([pod_in(leaving=True)], 1) == PodReadiness(0, 1, "", 1)


@pytest.mark.parametrize(
    ("there", "surplus", "waited_s", "enough"),
    [
        (3, 0, 0.0, "yes"),
        (3, 1, 59.0, "no"),
        (4, 1, 0.0, "no"),
        (2, 0, 59.0, "no"),
        (2, 1, SERVERS_WITHIN_S, "yes"),
        (0, 0, math.inf, "no"),
    ],
)
def test_a_run_waits_a_while_for_its_delay_servers(
    there: int, surplus: int, waited_s: float, enough: str
) -> None:
    """It waits for exactly as many as it wants: a minute if some are missing, for ever if all are."""
    assert is_enough(PodReadiness(there, 3, surplus=surplus), waited_s) == (enough == "yes")


def test_one_obstacle_is_enough() -> None:
    """The first one is told; they are mostly alike."""
    pods = [
        pod_in(),
        pod_in(phase="Pending", waiting="A"),
        pod_in(phase="Pending", waiting="B"),
    ]
    assert build_worker_readiness(pods, 3).obstacle == "A"


def test_pods_that_have_failed_say_why_if_no_other_does() -> None:
    """One that the node has rejected stays as it is, and others are made in its place."""
    failed, waiting = (
        pod_in(phase="Failed", reason="OutOfcpu"),
        pod_in(phase="Pending", waiting="A"),
    )
    assert build_worker_readiness([failed, pod_in(phase="Pending")], 2).obstacle == "OutOfcpu"
    assert build_worker_readiness([failed, waiting], 2).obstacle == "A"
