"""Builds what keeps the runs: submission, readiness, their files, what delay servers counted, retention."""

from typing import TYPE_CHECKING

from oku_coordinator.files.file_store import FileStore
from oku_coordinator.foundation import Foundation
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.runs.retention import Retention
from oku_coordinator.runs.runs import Runs
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.servers.server_watch import ServerWatch
from oku_coordinator.settings import CoordinatorSettings
from oku_coordinator.workers.assignment import Assignment

if TYPE_CHECKING:
    from oku_coordinator.kube.facade import KubeFacade


class RunServices:
    """What callers of the API use, and what works for runs whether or not one has its turn.

    Args:
        settings: what is allowed, and which delay servers there are.
        foundation: the ledger, the broker and the clock.
        assignment: which workers each run has.
        kube: scales for runs, in a cluster.
        file_store: has the files of runs.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        foundation: Foundation,
        assignment: Assignment,
        kube: "KubeFacade | None",
        file_store: FileStore,
    ) -> None:
        ledger, signals, clock = foundation.ledger, foundation.signals, foundation.clock.now
        servers = (kube and kube.servers) or NamedServers(settings.server_urls)
        counter = ServedCounter(servers, ledger)
        self.server_watch = ServerWatch(counter, ledger, signals, clock) if settings.server_urls else None
        keeper = FileKeeper(ledger, file_store)
        self.readiness = Readiness(
            ledger,
            assignment.roster,
            assignment,
            kube=kube,
            server_watch=self.server_watch,
            troubles=foundation.troubles,
            files=settings.files,
            keeper=keeper,
            most_queued=settings.most_queued,
            expected_workers=settings.expected_workers,
            allows_user_code=settings.allows_user_code,
        )
        self.runs = Runs(ledger, counter, signals, foundation.broker, self.readiness, clock)
        self.retention = Retention(ledger, settings.reports_path, settings.retention, clock, keeper)
