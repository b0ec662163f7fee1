"""Ticks of a run that is under way, for tests of what coordinators read from them."""

from collections.abc import Mapping
from typing import Any

from oku_core.accounting.run_state import RunState
from oku_core.results.sample import Sample
from oku_core.summary.tick import Tick


def build_tick(at: float, sample: Mapping[str, Any], **tick: Any) -> Tick:
    """A second of run r1, which has a million requests and nothing in flight, changed as wanted."""
    fields: dict[str, Any] = {
        "seconds": 1.0,
        "requests_total": 10**6,
        "accounted": 0,
        "leased": 0,
        "pending": 10**6,
        "done": 0,
        "resent_at_most": 0,
        "workers": 1,
        "in_flight": 0,
    }
    return Tick(run="r1", state=RunState.RUNNING, sample=Sample(at=at, **fields | dict(sample)), **tick)
