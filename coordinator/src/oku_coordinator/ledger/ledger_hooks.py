"""The hooks of the runs of a ledger: who calls them, and what came of them."""

import functools
from collections.abc import Iterable

from oku_coordinator.ledger.rules import conservation, hooks
from oku_coordinator.ledger.storage.records import HookRecord
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction
from oku_coordinator.ledger.tables import hook_table
from oku_core.messaging.hook import HookAttempt, SetupData
from oku_core.results.hook_summary import HookState
from oku_core.spec.spec import Hook


class LedgerHooks:
    """What can be done with the hooks of runs."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def fetch(self, run: str, hook: Hook) -> HookRecord | None:
        """What became of a hook of a run; None if nothing has yet."""
        return self._file.read(lambda transaction: hook_table.fetch_hook(transaction, run, hook))

    def fetch_setup_data(self, run: str) -> SetupData:
        """What the setup of a run returned; `NO_SETUP` if it has not."""
        return self._file.read(lambda transaction: hook_table.fetch_setup_data(transaction, run))

    def begin(self, run: str, hook: Hook, worker: str, incarnation: str, now: float) -> HookRecord | None:
        """Give a new attempt at a hook to a process of a worker; None if the run does not want it now."""
        begin = functools.partial(
            hooks.begin_attempt, run=run, hook=hook, worker=worker, incarnation=incarnation, now=now
        )
        return conservation.change(self._file, begin, now)

    def lose(self, attempt: HookAttempt, why: str, now: float) -> None:
        """The worker that had an attempt is lost; does nothing if the attempt has ended meanwhile."""
        lose = functools.partial(hooks.lose_attempt, attempt=attempt, why=why, now=now)
        conservation.change(self._file, lose, now)

    def give_up_teardown(self, run: str, why: str, now: float) -> None:
        """Let a run be over without waiting for its teardown; does nothing if it does not wait for it."""
        give_up = functools.partial(hooks.give_up_teardown, run=run, why=why, now=now)
        conservation.change(self._file, give_up, now)

    def find_void(self, held: Iterable[tuple[str, HookAttempt]]) -> list[tuple[str, HookAttempt]]:
        """Of attempts with the incarnations that have them, those of which nothing more counts."""

        def is_void(transaction: Transaction, incarnation: str, attempt: HookAttempt) -> bool:
            record = hook_table.fetch_hook(transaction, attempt.run, attempt.hook)
            return (
                record is None
                or record.state != HookState.BEGUN
                or (record.attempt, record.incarnation) != (attempt.number, incarnation)
            )

        return self._file.read(
            lambda transaction: [each for each in held if is_void(transaction, each[0], each[1])]
        )

    def is_returned(self, incarnation: str, attempt: HookAttempt) -> bool:
        """Whether the ledger has what came of an attempt, as the process that had it reported it."""
        record = self.fetch(attempt.run, attempt.hook)
        return (
            record is not None
            and (record.attempt, record.incarnation) == (attempt.number, incarnation)
            and record.state in (HookState.DONE, HookState.FAILED)
        )

    def list_holders(self, run: str) -> list[tuple[str, str]]:
        """The processes that have an attempt at a hook of a run, each as its incarnation and its worker."""
        records = (self.fetch(run, hook) for hook in Hook)
        return [
            (record.incarnation, record.worker)
            for record in records
            if record is not None and record.state == HookState.BEGUN
        ]
