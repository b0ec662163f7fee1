"""What a worker writes about its leases for the time after its death, wherever it is kept.

A lease is written before anything of it is taken, and how far it may go is written before it goes there. So
what a dead worker has not written it has not done.
"""

from collections.abc import Callable
from typing import Protocol

from oku_core.messaging.process_ends import FlightRecord

Write = Callable[[int], None]
"""Writes the first position of a lease that will certainly not be taken before the next call."""


class FlightRecorder(Protocol):
    """Keeps how far each lease in hand has gone."""

    def begin(self, lease: str) -> Write | None:
        """Begin with a lease, of which nothing is taken yet; None if nothing can be written of it."""

    def forget(self, lease: str) -> None:
        """Nothing is left to say of a lease: its final checkpoint is confirmed."""

    def find_dead(self) -> list[FlightRecord]:
        """The records of processes of this machine that have died; from one thread at a time, whichever."""


class NoRecorder:
    """Keeps nothing: nobody will know more than what the limits allow."""

    def begin(self, lease: str) -> Write | None:  # noqa: ARG002  # as the protocol wants it
        """Nothing is written."""
        return None

    def forget(self, lease: str) -> None:
        """Nothing was written."""

    def find_dead(self) -> list[FlightRecord]:
        """Nobody looks."""
        return []
