"""All that is kept of one run, in one piece: the API gives it, reports are made of it."""

from dataclasses import dataclass
from typing import Any

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.record import LeaseMark
from oku_core.history import Event, Moment
from oku_core.interval import Slice
from oku_core.spec_parser import build_mapping
from oku_core.summary import Summary


@dataclass(frozen=True, kw_only=True)
class Dossier:
    """A run and how it went.

    Attributes:
        at: Unix time when this was put together.
        summary: of the run.
        spec: under the names that users write.
        moments: its seconds, oldest first; none of a run that an older Oku made.
        events: oldest first.
        leases: as they were cut.
        slices: its request space, `[start, stop, state]`, rising.
    """

    at: float
    summary: Summary
    spec: dict[str, Any]
    moments: list[Moment]
    events: list[Event]
    leases: list[LeaseMark]
    slices: list[Slice]


def build_dossier(ledger: Ledger, summary: Summary, now: float) -> Dossier:
    """Read from the ledger what goes with a summary; may take a second for a long run."""
    history = ledger.fetch_history(summary.run)
    return Dossier(
        at=now,
        summary=summary,
        spec=build_mapping(ledger.fetch_run(summary.run).spec),
        moments=history.moments,
        events=history.events,
        leases=history.leases,
        slices=ledger.fetch_slices(summary.run),
    )
