from collections.abc import Mapping
from typing import Any

import pytest
from tests.kit.outcomes import make_counts

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.results.plan_causes import Load, OffPlanCause, find_causes

TARGET, CAP, WORKER, BROKER = OffPlanCause


def build_load(latencies_ms: Mapping[int, int] | None = None, **changes: Any) -> Load:
    """A run of 100/s with 20 in flight, which the user has said; they hold 200 ms."""
    latency = Histogram()
    for latency_ms, count in (latencies_ms or {10: 1000}).items():
        for _ in range(count):
            latency.record(1000 * latency_ms)
    account = Account(outcomes=make_counts(latency.total), times={Time.LATENCY: latency})
    for name in ("outcomes", "not_sent"):
        setattr(account, name, changes.pop(name, getattr(account, name)))
    values: dict[str, Any] = {"peak_rps": 100.0, "window": 20, "is_own_window": True}
    return Load(account, **values | changes)


@pytest.mark.parametrize(
    ("changes", "causes"),
    [
        ({"not_sent": [0, 9, 0]}, [WORKER]),
        ({"not_sent": [0, 0, 9]}, [BROKER]),
        ({"outcomes": make_counts(1000, lost=9)}, [WORKER]),
        ({"not_sent": [2, 3, 4]}, [BROKER, WORKER, TARGET]),
        ({"not_sent": [900, 1, 9]}, [TARGET]),
        ({}, [WORKER]),
    ],
)
def test_what_was_not_sent_says_why(changes: dict[str, Any], causes: list[OffPlanCause]) -> None:
    """The weightiest cause comes first; what stands for less than a hundredth is not told."""
    assert find_causes(build_load(**changes), 9) == causes


def test_a_window_that_does_not_hold_the_usual_latency_is_too_small() -> None:
    """By Little's law: 100/s with 300 ms are 30 in flight, and 20 are allowed."""
    assert find_causes(build_load({300: 1000}, not_sent=[500, 0, 0]), 500) == [CAP]


def test_a_target_that_is_slower_than_usual_is_to_blame() -> None:
    """What is in flight holds its usual latency."""
    assert find_causes(build_load({10: 900, 3000: 50}, not_sent=[50, 0, 0]), 50) == [TARGET]


@pytest.mark.parametrize("changes", [{"is_own_window": False}, {"window": 200}])
def test_a_window_as_large_as_that_of_others_is_not_too_small(changes: dict[str, Any]) -> None:
    """Who says nothing has what is sent in 2 s; a target that needs longer is slow."""
    load = build_load({9000: 1000}, not_sent=[500, 0, 0], **changes)
    assert find_causes(load, 500) == [TARGET]


def test_a_target_that_never_answers_is_to_blame() -> None:
    """Nobody knows how long it usually takes."""
    load = build_load({10: 0}, outcomes=make_counts(0, timeout=100), not_sent=[500, 0, 0])
    assert find_causes(load, 500) == [TARGET]


@pytest.mark.parametrize(
    ("latencies_ms", "cause"),
    [({10: 991, 100: 9}, WORKER), ({10: 990, 100: 10}, TARGET), ({150: 1000}, TARGET), ({300: 1000}, CAP)],
)
def test_what_was_sent_late_is_due_to_slow_requests_if_they_can_fill_the_window(
    latencies_ms: dict[int, int], cause: OffPlanCause
) -> None:
    """In a full window, half of the requests take half of the time that it holds, or longer."""
    assert find_causes(build_load(latencies_ms), 100) == [cause]


def test_what_is_sent_in_another_second_counts_beside_what_is_not_sent() -> None:
    """Each has its own cause."""
    assert find_causes(build_load(not_sent=[0, 0, 10]), 100) == [WORKER, BROKER]
