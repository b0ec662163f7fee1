"""What a worker needs before it can take leases of a run: the files of the run, and its user code loaded."""

from typing import NamedTuple

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import hook_table
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.accounting.run_state import RunState
from oku_core.messaging.hook import NO_SETUP, SetupData, build_spec_key
from oku_core.spec.files import list_files
from oku_core.spec.spec import Hook


class RunNeeds(NamedTuple):
    """What a worker needs before it can take leases of a run.

    Args:
        files: the digests of the files of the run.
        code: its user code, as `build_spec_key` names it; empty if none is to be loaded now.
    """

    files: frozenset[str] = frozenset()
    code: str = ""

    def are_met_by(self, worker: WorkerState) -> bool:
        """Whether a worker has all of it, or has said that it cannot have the rest."""
        return self.files <= worker.files and self.code in {"", worker.loaded}


def build_needs(run: RunRecord, setup: SetupData | None) -> RunNeeds:
    """What workers need for a run whose user code is loaded with this; None if it is not to be loaded."""
    files = frozenset(file.digest for file in list_files(run.spec))
    return RunNeeds(files, "" if setup is None else build_spec_key(run.run, setup.attempt))


def find_setup(ledger: Ledger, run: RunRecord) -> SetupData | None:
    """What the user code of a run is loaded with; None if it is not to be loaded now, or there is none."""
    if not run.spec.runs_user_code or run.state is RunState.TEARING_DOWN:
        return None
    if Hook.SETUP not in run.spec.hooks:
        return NO_SETUP
    with ledger.read() as t:
        setup = hook_table.fetch_setup_data(t, run.run)
    return setup if setup.attempt else None
