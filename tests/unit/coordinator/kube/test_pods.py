import msgspec
import pytest

from oku_coordinator.kube.pods import (
    BUSY_COST,
    COST_ANNOTATION,
    Pod,
    build_cost_patch,
    find_cost_changes,
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
    """By phase, address and conditions."""
    pod = msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)
    assert (pod.is_running, pod.is_ready) == (is_running == "yes", is_ready == "yes")


def test_busy_workers_are_deleted_last() -> None:
    """What is right already is not patched; the busy ones come first, should there be no time for all."""
    pods = [
        build_pod("idle"),
        build_pod("idle-now", "100"),
        build_pod("busy"),
        build_pod("busy-still", "100"),
        build_pod("strange", "much"),
    ]
    held = {"busy": 1, "busy-still": 2, "no-pod": 2, None: 3}
    changes = find_cost_changes(pods, held)
    assert changes == {"busy": BUSY_COST, "idle-now": 0, "strange": 0}
    assert next(iter(changes)) == "busy"


def test_a_cost_is_an_annotation_among_others() -> None:
    """A merge patch leaves the others as they are; annotations are texts."""
    assert build_cost_patch(100) == {"metadata": {"annotations": {COST_ANNOTATION: "100"}}}
