"""What runs need, where no worker lives."""

from typing import Any

from oku_coordinator.ledger import Ledger
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster


def build_readiness(ledger: Ledger, **parts: Any) -> Readiness:
    """Build readiness without workers, with other parts as they are given."""
    roster = Roster(10.0)
    return Readiness(ledger, roster, Assignment(ledger=ledger, roster=roster), **parts)
