"""Reports of leases for the tests of lines and flags."""

from collections.abc import Callable
from typing import Any

import pytest

from oku_core.messaging.lease import Report


@pytest.fixture
def build_report() -> Callable[..., Report]:
    """A function that builds a report of one request, apart from its changes."""

    def build(**changes: Any) -> Report:
        names = {"lease": "l1", "execution": "e1", "worker": "w1", "incarnation": "b1"}
        values: dict[str, Any] = {**names, "start": 0, "done": 1, "started_at": 0.0, "ended_at": 0.0}
        return Report(**values | changes)

    return build
