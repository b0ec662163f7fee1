"""Under which conditions runs go on here: what is refused, whether a run may begin, and what it waits for.

Workers and, in a cluster, pods and the API that scales them are looked at elsewhere; what is known of them
becomes notices, lines for those who watch a run. Loki holds no run up, but whoever watches one should know.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.records import RunRecord
from oku_coordinator.servers.server_watch import ServerWatch
from oku_coordinator.settings import MOST_QUEUED
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.run_state import RunState
from oku_core.spec.files import NOWHERE, SpecFiles
from oku_core.spec.spec import Spec

if TYPE_CHECKING:
    from oku_coordinator.kube.facade import KubeFacade

LONGEST_NOTICE = 300
"""Characters; what others say may be long."""


class QueueFullError(Exception):
    """Too many runs wait already."""

    def __init__(self, queued: int, most: int) -> None:
        super().__init__(
            f"{queued} runs wait or are active, no more than {most} may: wait for one, or cancel one"
        )


class Readiness:
    """See the module.

    Args:
        ledger: says which run has its turn.
        roster: who lives.
        has_broker: whether there is a connection to the broker.
        kube: scales for runs, in a cluster.
        server_watch: sees the delay servers, where there are any.
        find_troubles: what else does not go as it should, a line each.

    Attributes:
        files: says which files specs may name; none unless it is set.
    """

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        has_broker: Callable[[], bool] = lambda: True,
        kube: "KubeFacade | None" = None,
        server_watch: ServerWatch | None = None,
        find_troubles: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._has_broker = has_broker
        self._kube = kube
        self._server_watch = server_watch
        self._find_troubles = find_troubles
        self.files: SpecFiles = NOWHERE
        self.most_queued = MOST_QUEUED

    def check(self, spec: Spec) -> None:
        """Refuse a spec that cannot be carried out here, with a `UserError`."""
        self.files.check(spec)
        if self._kube is not None:
            self._kube.check(spec)

    def check_queue(self) -> None:
        """Refuse one more run with a `QueueFullError` when too many wait already."""
        if (queued := self._ledger.runs.count_queued()) >= self.most_queued:
            raise QueueFullError(queued, self.most_queued)

    def may_begin(self, run: RunRecord) -> bool:
        """Whether what a run needs beside workers is there: its delay servers, ready, named and seen."""
        is_scaled = self._kube is None or self._kube.may_begin(run)
        return is_scaled and (self._server_watch is None or self._server_watch.may_begin(run))

    def expects_workers(self) -> bool:
        """Whether pods of workers are on their way."""
        return self._kube is not None and not self._kube.workers.is_complete

    def forget_refusals(self, run: str) -> None:
        """A run is resumed: every worker may try it again."""
        self._roster.forget_refusals(run)

    def build_notices(self, run: RunRecord) -> list[str]:
        """What a run waits for, and what does not go as it should; a line each, none of a run at rest."""
        if run.is_at_rest:
            return []
        turn = self._ledger.runs.fetch_current()
        if turn is not None and turn.run != run.run:
            obstacle = _add(self.find_obstacle(turn))
            return [_shorten(f"waiting for its turn: run {turn.run} is {turn.state}{obstacle}")]
        return [_shorten(notice) for notice in self._tell_all(run)]

    def find_obstacle(self, run: RunRecord) -> str:
        """What keeps the run that has its turn from going on, in a line; empty for nothing that is known."""
        return next(self._tell_all(run), "")

    def _tell_all(self, run: RunRecord) -> Iterator[str]:
        yield from self._tell_of_workers(run)
        yield from self._tell_of_servers(run)
        yield from self._tell_of_others()

    def _tell_of_workers(self, run: RunRecord) -> Iterator[str]:
        here = len(self._roster.workers())
        if run.state not in (RunState.PENDING, RunState.RUNNING):
            return
        if self._kube is not None and here < self._kube.workers.wanted:
            workers = self._kube.workers
            if not here or not workers.is_complete:
                yield f"waiting for workers: {here} of {workers.wanted} connected{_add(workers.obstacle)}"
        elif not here:
            yield "waiting for a worker to connect"
        if barred := self._roster.find_barred(run.run):
            others = f" (and {len(barred) - 1:,} more)" if len(barred) > 1 else ""
            yield f"worker {barred[0].name} gets none of it{others}: {barred[0].refusal}"

    def _tell_of_servers(self, run: RunRecord) -> Iterator[str]:
        if self._kube is None or run.state != RunState.PENDING or self._kube.may_begin(run):
            return
        servers = self._kube.delay_servers
        if servers.wanted:  # else they are asked for in a moment
            count = f"{servers.there} of {servers.wanted} ready"
            surplus = f", {servers.surplus} more to go" if servers.surplus else ""
            yield f"waiting for delay servers: {count}{surplus}{_add(servers.obstacle)}"

    def _tell_of_others(self) -> Iterator[str]:
        if not self._has_broker():
            yield "the broker does not answer: nothing is dealt out, and no report comes in"
        if self._kube is not None and self._kube.trouble:
            yield f"Kubernetes: {self._kube.trouble}"
        yield from self._roster.find_troubles()
        yield from self._find_troubles()


def _shorten(notice: str) -> str:
    return textwrap.shorten(notice, LONGEST_NOTICE, placeholder=" …")


def _add(obstacle: str) -> str:
    return f": {obstacle}" if obstacle else ""
