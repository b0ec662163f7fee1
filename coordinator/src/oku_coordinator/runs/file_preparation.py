"""Has the workers fetch the files of the run that has its turn, and load its user code, before its leases.

All of them are told, again and again, so that those that come later hear of it too. They say in their
progress what is dealt with, and the roster counts no other worker as one that can take leases: no second of
a schedule passes while user code is loaded.
"""

from collections.abc import Callable

from oku_coordinator.broker.sender import Broker
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.workers.liveness import Roster, RunNeeds
from oku_core.accounting.run_state import RunState
from oku_core.messaging.hook import NO_SETUP, SetupData, build_spec_key
from oku_core.messaging.order import Fetch, UserCode
from oku_core.spec.files import list_files
from oku_core.spec.spec import Hook, Spec

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
        """Tell the workers what the run needs that has its turn, if it needs anything."""
        run = self._ledger.runs.fetch_current()
        if run is None or run.state not in (RunState.PENDING, RunState.RUNNING, RunState.TEARING_DOWN):
            return
        files = {file.digest: file for file in list_files(run.spec)}
        setup = find_setup(self._ledger, run)
        if not files and setup is None:
            return
        self._roster.require(build_needs(run, setup))
        code = None
        # The setup may have returned a lot.
        if setup is not None and self._roster.find_preparing(run.run):
            code = UserCode(spec=run.spec, setup=setup)
        tickets = {digest: self._build_ticket(digest) for digest in files}
        self._broker.send_fetch(
            Fetch(run=run.run, files=[str(file) for file in files.values()], tickets=tickets, code=code)
        )


def find_setup(ledger: Ledger, run: RunRecord) -> SetupData | None:
    """What the user code of a run is loaded with; None if it is not to be loaded now, or there is none."""
    if not run.spec.runs_user_code or run.state is RunState.TEARING_DOWN:
        return None
    if Hook.SETUP not in run.spec.hooks:
        return NO_SETUP
    setup = ledger.hooks.fetch_setup_data(run.run)
    return setup if setup.attempt else None


def build_needs(run: RunRecord, setup: SetupData | None) -> RunNeeds:
    """What workers need for a run whose user code is loaded with this."""
    files = frozenset(file.digest for file in list_files(run.spec))
    return RunNeeds(run.run, files, "" if setup is None else build_spec_key(run.run, setup.attempt))


def find_files_within_s(spec: Spec) -> float:
    """How many seconds workers may take to fetch the files of a run, in addition to coming."""
    return sum({file.digest: file.size for file in list_files(spec)}.values()) / _SLOWEST_BYTES_PER_S
