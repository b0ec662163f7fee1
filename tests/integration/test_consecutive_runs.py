"""Runs that follow each other at once on the same workers: each has its own seconds alone."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit.free_ports import pick_port
from tests.kit.runs.standing_stack import StandingStack, run_standing_stack
from tests.kit.servers.arrival_target import ArrivalTarget, run_arrival_target

ROUNDS = 2
SLOW_S = 0.7
SLOW_REQUESTS = 300
"""Three windows of both workers: a worker speaks at least once while they are answered."""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[StandingStack]:
    """Two workers that stay."""
    with run_standing_stack(tmp_path, 2) as stack:
        yield stack


@pytest.fixture
def targets() -> Iterator[tuple[ArrivalTarget, ArrivalTarget]]:
    """A slow one and a fast one."""
    with contextlib.ExitStack() as servers:
        yield (
            servers.enter_context(run_arrival_target(SLOW_S)),
            servers.enter_context(run_arrival_target(0.001)),
        )


def fetch_samples(stack: StandingStack, run: str) -> list[dict[str, Any]]:
    """The samples of a run, as reports have them."""
    status, history = stack.api.call("GET", f"/api/runs/{run}/history")
    assert status == 200
    samples: list[dict[str, Any]] = history["samples"]
    return samples


def test_a_run_has_no_answer_of_the_run_before_it(
    stack: StandingStack, targets: tuple[ArrivalTarget, ArrivalTarget]
) -> None:
    """Neither in its samples nor in what keeps it going: with a dead target it ends as it does alone."""
    slow, fast = targets
    submit = stack.api.submit
    before: list[str] = []
    after: list[str] = []
    for _ in range(ROUNDS):
        before.append(submit(url=slow.url, requests=SLOW_REQUESTS, concurrency=50))
        after.append(submit(url=fast.url, rate="200/s", duration="2s", concurrency=50))
    before.append(submit(url=slow.url, requests=SLOW_REQUESTS, concurrency=50))
    gone = submit(
        url=f"http://127.0.0.1:{pick_port()}/", requests=10**6, concurrency=2, max_rate="50/s",
        stop_when_down="2s",
    )  # fmt: skip
    for run in (*before, *after):
        stack.api.wait_for_state(run, "completed", 40)
    ended = stack.api.wait_for_state(gone, "failed")

    for run in before:
        assert max(sample["max_ms"] or 0 for sample in fetch_samples(stack, run)) > 1000 * SLOW_S
    for run in after:
        measured = [sample["max_ms"] for sample in fetch_samples(stack, run) if sample["max_ms"] is not None]
        assert measured
        assert max(measured) < 1000 * SLOW_S, measured
    assert ended["reason"].startswith("the target is down: no request was ever ok within 2 s, most ended as ")
    assert ended["active_s"] < 10
    assert not any(
        sample.get("times", {}).get("latency", {}).get("buckets") for sample in fetch_samples(stack, gone)
    )
