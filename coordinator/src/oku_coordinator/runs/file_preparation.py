"""Has the workers fetch the files of the run that has its turn before they get leases of it.

All of them are told, again and again, so that those that come later hear of it too. They say in their
progress which files are dealt with, and the roster counts no other worker as one that can take leases.
"""

from collections.abc import Callable

from oku_coordinator.broker.sender import Broker
from oku_coordinator.ledger import Ledger
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.run_state import RunState
from oku_core.messaging.order import Fetch
from oku_core.spec.files import list_files
from oku_core.spec.spec import Spec

_SLOWEST_BYTES_PER_S = 10_000_000
"""What a transfer takes at least; a run waits for its files that much longer."""


class FilePreparation:
    """Prepares one run at a time.

    Args:
        ledger: says which run has its turn.
        roster: says who can take leases.
        broker: the way to the workers.
        build_ticket: makes what a worker fetches a file with, by its digest.
    """

    def __init__(
        self, ledger: Ledger, roster: Roster, broker: Broker, build_ticket: Callable[[str], str]
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._broker = broker
        self._build_ticket = build_ticket

    def look(self) -> None:
        """Tell the workers which files the run needs that has its turn, if it needs any."""
        run = self._ledger.runs.fetch_current()
        if run is None or run.state not in (RunState.PENDING, RunState.RUNNING, RunState.TEARING_DOWN):
            return
        files = {file.digest: file for file in list_files(run.spec)}
        if not files:
            return
        self._roster.require_files(run.run, frozenset(files))
        tickets = {digest: self._build_ticket(digest) for digest in files}
        self._broker.send_fetch(
            Fetch(run=run.run, files=[str(file) for file in files.values()], tickets=tickets)
        )


def find_files_within_s(spec: Spec) -> float:
    """How many seconds workers may take to fetch the files of a run, in addition to coming."""
    return sum({file.digest: file.size for file in list_files(spec)}.values()) / _SLOWEST_BYTES_PER_S
