"""Work on a ledger that is too long for one transaction, split into several."""

import logging
from collections.abc import Iterator
from contextlib import closing, suppress

from oku_coordinator.ledger.ledger import Ledger
from oku_coordinator.ledger.rules.leases import expiring, waves
from oku_coordinator.ledger.storage.records import BreachError, UnknownRunError
from oku_coordinator.ledger.tables import history_table, run_table, schedule_table, slice_table
from oku_coordinator.ledger.tables.accounts import account_table
from oku_core.accounting.interval import Slice
from oku_core.accounting.lease_state import LeaseSpan

PAGE = 1000
"""The number of rows in one read."""
_log = logging.getLogger(__name__)


def pause_interrupted(ledger: Ledger, now: float, *, but: str | None = None) -> None:
    """Pause the runs of a killed stack; only for a stack that is about to start.

    Their leases expire, since no worker holds them. The run `but` keeps its state and continues. A run that
    does not balance fails; the others are paused all the same.
    """
    with ledger.read() as t:
        live = run_table.fetch_live_runs(t)
    for run in live:
        try:
            with ledger.change(now) as t:
                expiring.pause_interrupted_run(t, run, now, goes_on=run == but)
        except BreachError:
            _log.exception("a run has failed", extra={"run": run})


def preload_account(ledger: Ledger, run: str) -> None:
    """Load the account of a run that is about to have its turn, and check it.

    A run of many parts takes a second, in which the ledger is not blocked. An account that cannot be loaded
    is read again when it is needed, and its fault reported then.
    """
    with suppress(UnknownRunError, BreachError):
        with ledger.read() as t:
            record = run_table.fetch_run(t, run)
            if record.is_active or account_table.is_in_memory(t, run):
                return
        with closing(ledger.open_reader()) as reader, reader.read() as t:
            account = account_table.load_account(t, run)
        with ledger.read() as t:
            if run_table.fetch_run(t, run) == record:  # nothing was accounted meanwhile
                t.accounts.setdefault(run, account)


def drop_accounted_waves(ledger: Ledger, run: str) -> None:
    """Delete the fully accounted waves of a run."""
    with ledger.read() as t:
        finished = waves.find_accounted(t, run)
    if finished:
        with ledger.change() as t:
            schedule_table.delete_waves(t, run, finished)


def read_leases(ledger: Ledger, run: str) -> Iterator[list[LeaseSpan]]:
    """Read the history of the leases of a run, in the order of dealing; pages are read lazily."""
    after = ""
    while True:
        with ledger.read() as t:
            spans = history_table.fetch_lease_spans(t, run, after, PAGE)
        if not spans:
            return
        yield spans
        after = spans[-1].id


def read_slices(ledger: Ledger, run: str) -> Iterator[list[Slice]]:
    """Read the slices of a run; pages are read lazily."""
    start = 0
    while True:
        with ledger.read() as t:
            slices = slice_table.fetch_some_slices(t, run, start, PAGE)
        if not slices:
            return
        yield slices
        start = slices[-1].stop
