"""A run with stages of a rate over pods that ask the coordinator for the time; one of them is deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.kit.kubernetes.pod_run import start_pod_run
from tests.kit.kubernetes.release import Release, wait_until_published
from tests.kit.loki.loki_account import assert_published, assert_ticks_agree
from tests.kit.runs.account import assert_completed

_WORKERS = 3
_RATE = 200
_FLAGS = (
    "--stage", f"8s:0..{_RATE}/s", "--stage", f"14s:{_RATE}/s", "--stage", "8s:0/s",
    "--workers", str(_WORKERS), "--servers", "1", "--engine", "httptools", "--delay", "20ms",
)  # fmt: skip
_PHASES = {"stage-1": 4 * _RATE, "stage-2": 14 * _RATE, "stage-3": 4 * _RATE}
_BUSY_S = 15.0
_DIES_S = 14.0
"""A worker that is silent for longer is dead, and what it had is dealt again."""
_FAR = """
from oku_workers.timing import coordinator_clock
coordinator_clock.fetch_kernel_id = lambda: "another machine"
from oku_cli.main import main
main()
"""


@contextmanager
def on_other_machines(release: Release) -> Iterator[None]:
    """Workers that start in the block believe that they are, as if the cluster had many nodes."""

    def patch(command: list[str] | None) -> None:
        change = {"spec": {"template": {"spec": {"containers": [{"name": "worker", "command": command}]}}}}
        name = ("deployment", f"{release.name}-workers", "-n", release.namespace)
        release.cluster.call("patch", *name, "--patch-file=/dev/stdin", document=change)

    patch(["python", "-Ic", _FAR])
    try:
        yield
    finally:
        patch(None)


@pytest.fixture(scope="module")
def bounds() -> list[float]:
    """By how many seconds workers may be wrong about the coordinator's clock, as it says."""
    return []


@pytest.fixture(scope="module")
def summary(
    release: Release, bounds: list[float], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """That of the run, one of whose pods is deleted without grace."""
    folder = tmp_path_factory.mktemp("rate")
    with on_other_machines(release), start_pod_run(release, folder, *_FLAGS) as run:
        run.wait_for_accounted(7 * _RATE)
        bounds.append(run.api.read_metric("oku_clock_bound_seconds"))
        release.delete_pod(run.find_worker(), "--force", "--grace-period=0")
        return run.wait_for_end(30 + 2 * _BUSY_S)


def test_each_stage_is_accounted_exactly(summary: dict[str, Any]) -> None:
    """Whatever became of the pod: some of what it had may be lost, the rest is sent by others."""
    assert_completed(summary)
    assert {phase["name"]: phase["requests"] for phase in summary["phases"]} == _PHASES
    for name, count in summary["outcomes"].items():
        assert sum(phase["outcomes"][name] for phase in summary["phases"]) == count
    others = {name: count for name, count in summary["outcomes"].items() if count and name != "ok"}
    assert set(others) <= {"lost", "not_sent"}
    assert sum(others.values()) <= _RATE / _WORKERS * _DIES_S
    assert summary["servers"]["served"] >= summary["outcomes"]["ok"]


def test_all_pods_take_part_and_the_run_ends_on_time(summary: dict[str, Any]) -> None:
    """The plan is kept by those that are left, and by the one that comes instead."""
    assert len([worker for worker in summary["workers"] if worker["requests"]]) >= _WORKERS
    assert 29 <= summary["active_s"] <= 30 + _BUSY_S


def test_the_bound_of_the_clocks_is_told(summary: dict[str, Any], bounds: list[float]) -> None:
    """The workers have asked for the time over the network of the cluster, so they know it to so much."""
    assert summary
    [bound_s] = bounds
    assert 0 < bound_s < 0.5


def test_loki_has_what_was_not_sent_as_well(release: Release, summary: dict[str, Any]) -> None:
    """Sums of all outcomes agree, and no line is there twice."""
    with release.open_api() as api, release.open_loki() as loki:
        wait_until_published(api)
        assert_published(loki, summary)
        assert_ticks_agree(loki, summary)
