"""Notices beside the state of a run: troubles of the installation, of targets, and of workers."""

from collections.abc import Iterator, Sequence

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import history_table
from oku_coordinator.workers.assignment import Assignment
from oku_core.results.event import EventType

UNCONFINED = "cannot confine user code: its kernel has no Landlock"


class Troubles:
    """Troubles of the installation, beside its ledger and its workers; here none."""

    def find_broker_trouble(self) -> str:
        """The problem with the broker; empty if there is none."""
        return ""

    def find_obstacle(self) -> str:
        """Why the coordinator is not ready, in a line; empty if it is ready."""
        return ""

    def list_other_troubles(self) -> Iterator[str]:
        """Yield all other problems, a line each."""
        return iter(())


class TargetNotices:
    """Notices about the targets of runs: at most a line for each."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def show(self, run: str, text: str) -> None:
        """Set the notice of a run; an empty text removes it."""
        if text:
            self._texts[run] = text
        else:
            self._texts.pop(run, None)

    def find(self, run: str) -> str:
        """The notice of a run; empty if there is none."""
        return self._texts.get(run, "")


def list_unconfined(assignment: Assignment, run: RunRecord) -> list[str]:
    """List the workers of a run with a turn that cannot sandbox its user code."""
    if not run.spec.runs_user_code:
        return []
    return [worker.name for worker in assignment.find_members(run.run) if worker.is_unconfinable]


def describe_unconfined(names: Sequence[str]) -> list[str]:
    """A notice about these workers; none if there are none."""
    others = f" (and {len(names) - 1:,} more)" if len(names) > 1 else ""
    return [f"worker {names[0]} {UNCONFINED}{others}"] if names else []


def fetch_unconfined_notice(ledger: Ledger, run: RunRecord) -> list[str]:
    """The notice of a run at rest, whose workers are released."""
    if not run.spec.runs_user_code:
        return []
    with ledger.read() as t:
        events = history_table.fetch_events(t, run.run)
    names = [event.worker or "" for event in events if event.type == EventType.WORKER_UNCONFINED]
    return describe_unconfined(list(dict.fromkeys(names)))
