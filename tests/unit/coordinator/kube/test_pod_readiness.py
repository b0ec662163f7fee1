import math
from typing import Any

import msgspec
import pytest

from oku_coordinator.kube.pods import (
    SERVERS_WITHIN_S,
    Pod,
    PodReadiness,
    build_server_readiness,
    build_worker_readiness,
    is_enough,
)


def build_pod(
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
    pods = [build_pod(ready=False), build_pod(phase="Pending"), build_pod(waiting="CrashLoopBackOff")]
    assert build_worker_readiness(pods, 4) == PodReadiness(
        1, 4, "CrashLoopBackOff (kubectl logs --previous p shows why)"
    )


def test_delay_servers_are_there_when_they_are_ready() -> None:
    """Delay servers that are not ready answer nobody."""
    assert build_server_readiness([build_pod(), build_pod(ready=False)], 2) == PodReadiness(1, 2, "")


def test_delay_servers_that_have_to_go_are_surplus() -> None:
    """They count before and after Kubernetes has deleted them; a terminating pod is never ready."""
    assert build_server_readiness([build_pod(), build_pod(), build_pod()], 1) == PodReadiness(3, 1, "", 2)
    assert build_server_readiness([build_pod(), build_pod(leaving=True)], 1) == PodReadiness(1, 1, "", 1)
    assert build_server_readiness([build_pod(leaving=True)], 1) == PodReadiness(0, 1, "", 1)


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
    pods = [build_pod(), build_pod(phase="Pending", waiting="A"), build_pod(phase="Pending", waiting="B")]
    assert build_worker_readiness(pods, 3).obstacle == "A"


def test_pods_that_have_failed_say_why_if_no_other_does() -> None:
    """One that the node has rejected stays as it is, and others are made in its place."""
    failed, waiting = build_pod(phase="Failed", reason="OutOfcpu"), build_pod(phase="Pending", waiting="A")
    assert build_worker_readiness([failed, build_pod(phase="Pending")], 2).obstacle == "OutOfcpu"
    assert build_worker_readiness([failed, waiting], 2).obstacle == "A"
