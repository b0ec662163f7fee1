from typing import Any

import msgspec

from oku_coordinator.kube.pods import Pod
from oku_coordinator.kube.turnout import Turnout, build_server_turnout, build_worker_turnout


def build_pod(*, phase: str = "Running", ready: bool = True, waiting: str = "") -> Pod:
    """A pod as the API tells of it."""
    status: dict[str, Any] = {
        "phase": phase,
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": str(ready)}],
    }
    if waiting:
        status["containerStatuses"] = [{"state": {"waiting": {"reason": waiting}}}]
    return msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)


def test_workers_are_there_when_they_run() -> None:
    """They have no probes; one that crashes again and again does not run, whatever its phase."""
    pods = [build_pod(ready=False), build_pod(phase="Pending"), build_pod(waiting="CrashLoopBackOff")]
    assert build_worker_turnout(pods, 4) == Turnout(1, 4, "CrashLoopBackOff")


def test_delay_servers_are_there_when_they_are_ready() -> None:
    """Before that they answer nobody."""
    assert build_server_turnout([build_pod(), build_pod(ready=False)], 2) == Turnout(1, 2, "")


def test_one_obstacle_is_enough() -> None:
    """The first one: they are mostly alike."""
    pods = [build_pod(), build_pod(phase="Pending", waiting="A"), build_pod(phase="Pending", waiting="B")]
    assert build_worker_turnout(pods, 3).obstacle == "A"


def test_a_turnout_is_complete_when_none_is_missing() -> None:
    """More than are wanted are no fewer."""
    assert [Turnout(there, 2).is_complete for there in (1, 2, 3)] == [False, True, True]
    assert Turnout().is_complete
