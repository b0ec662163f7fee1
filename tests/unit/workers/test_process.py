from collections.abc import Callable
from typing import Any

import pytest
from celery.worker.control import Panel

from oku_core.messaging import PACE_COMMAND, STOP_COMMAND
from oku_workers import process


class FakeStation:
    """Does at once what it is asked."""

    def ask(self, call: Callable[[], Any]) -> Any:
        """Call a function."""
        return call()


class FakeCrew:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.orders: list[dict[str, Any]] = []

    def stop(self, **order: Any) -> None:
        """As the crew."""
        self.orders.append(order)


class FakeBeat:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.intervals: list[float] = []

    def set_interval(self, interval_s: float) -> None:
        """As the beat."""
        self.intervals.append(interval_s)


@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        ({"run": "r1", "leases": [], "grace_s": 2.5}, {"run": "r1", "leases": [], "grace_s": 2.5}),
        ({"leases": ["l1"]}, {"run": None, "leases": ["l1"], "grace_s": 0.0}),
        ({}, {"run": None, "leases": (), "grace_s": 0.0}),
    ],
)
def test_the_order_to_stop_reaches_the_crew(arguments: dict[str, Any], order: dict[str, Any]) -> None:
    """As the coordinator sends it through Celery's remote control; what it leaves out stops nothing."""
    crew = FakeCrew()
    process._register_orders(FakeStation(), crew, FakeBeat())  # type: ignore[arg-type]
    Panel.data[STOP_COMMAND](None, **arguments)
    assert crew.orders == [order]


def test_the_order_of_the_pace_reaches_the_beat() -> None:
    """As the coordinator sends it when it has many workers."""
    beat = FakeBeat()
    process._register_orders(FakeStation(), FakeCrew(), beat)  # type: ignore[arg-type]
    Panel.data[PACE_COMMAND](None, progress_every_s=3.0)
    assert beat.intervals == [3.0]
