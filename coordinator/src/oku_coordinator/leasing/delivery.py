"""Sends leases to their workers, with the spec until the worker confirms that it has it.

Nothing here waits for the broker. Messages may be lost: a lease that is not reported is sent again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oku_coordinator.broker.sender import Broker
from oku_coordinator.files.file_access import FileAccess
from oku_coordinator.leasing.expiry import START_WITHIN_S
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import hook_table, schedule_table
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.hook import NO_SETUP, SetupData, build_spec_key
from oku_core.messaging.lease import Lease, LeaseBatch, read_lease_number
from oku_core.messaging.order import Control, Stop
from oku_core.schedule.wave import ActivePeriod, Wave
from oku_core.spec.files import list_files
from oku_core.spec.request_template import ask_servers
from oku_core.spec.spec import Hook, Spec

AskedEnds = dict[str, dict[str, int]]
"""By incarnation: for each lease, the first position that should no longer be taken."""


class Delivery:
    """The way of leases to their workers.

    Args:
        broker: takes the messages.
        roster: knows each worker's clock, and which specs it has.
        ledger: has the periods and the waves of leases, and the results of setups.
        server_urls: of Oku's own delay servers.
        file_access: lets workers fetch the files of the run.
    """

    def __init__(
        self,
        broker: Broker,
        roster: Roster,
        ledger: Ledger,
        server_urls: Sequence[str],
        file_access: FileAccess,
    ) -> None:
        self._broker = broker
        self._roster = roster
        self._ledger = ledger
        self._server_urls = tuple(server_urls)
        self._file_access = file_access

    @property
    def is_away(self) -> bool:
        """Whether the broker is down."""
        return self._broker.is_away

    def send(self, run: RunRecord, leases: Iterable[LeaseRecord], shares: Shares) -> None:
        """Send open leases of a run, one message to each live worker, with its share of the run.

        None is sent while the broker is down: the leases are found missing later and sent again.
        """
        if self.is_away:
            return
        by_incarnation: dict[str, list[LeaseRecord]] = {}
        for lease in leases:
            by_incarnation.setdefault(lease.incarnation, []).append(lease)
        if not by_incarnation:
            return
        message = self._build_message(run, shares)
        batches = []
        for mine in by_incarnation.values():
            if worker := self._roster.find(mine[0].worker, mine[0].incarnation):
                # The leases of one message may differ in age: each becomes stale at its own time.
                sendable = [lease for lease in mine if message.can_carry(lease)]
                for cut_at in dict.fromkeys(lease.cut_at for lease in sendable):
                    same = [lease for lease in sendable if lease.cut_at == cut_at]
                    batches.append(message.build(worker, same))
        self._broker.send(batches)

    def send_controls(self, controls: Sequence[Control]) -> None:
        """Send control messages to workers."""
        self._broker.send(controls)

    def shorten(self, asked: AskedEnds) -> None:
        """Ask workers to end leases early."""
        self._broker.send([Control(incarnation=to, ends=ends) for to, ends in asked.items()])

    def drain(self, leases: Iterable[tuple[str, str]]) -> None:
        """Request the final checkpoints of leases, given with their incarnations.

        Workers take nothing more of them; requests in flight may end.
        """
        asked: AskedEnds = {}
        for incarnation, lease in leases:
            asked.setdefault(incarnation, {})[lease] = 0
        self.shorten(asked)

    def stop(self, run: RunRecord, leases: Iterable[LeaseRecord], at: float | None = None) -> None:
        """Stop the leases of a run up to the newest of these, at a Unix time or at once."""
        up_to = max((read_lease_number(lease.id) for lease in leases), default=0)
        self._broker.send([Stop(run=run.run, up_to=up_to, grace_s=run.drain_s, at=at)])

    def _build_message(self, run: RunRecord, shares: Shares) -> "_Message":
        period, waves, setup = None, [], NO_SETUP
        if run.spec.has_clock or Hook.SETUP in run.spec.hooks:
            with self._ledger.read() as t:
                period = schedule_table.fetch_period(t, run.run) if run.spec.has_clock else None
                waves = schedule_table.fetch_waves(t, run.run) if run.spec.is_open else []
                setup = hook_table.fetch_setup_data(t, run.run)
        return _Message(
            run=run.run,
            spec=ask_servers(run.spec, run.count_name, self._server_urls),
            period=period and period.build_period(),
            waves={wave.begin: wave for wave in waves},
            tickets=self._file_access.build_tickets(file.digest for file in list_files(run.spec)),
            setup=setup,
            shares=shares,
        )


@dataclass(frozen=True, kw_only=True)
class _Message:
    """The common part of messages with leases of one run."""

    run: str
    spec: Spec
    period: ActivePeriod | None
    waves: Mapping[int, Wave]
    tickets: dict[str, str]
    setup: SetupData
    shares: Shares

    def can_carry(self, lease: LeaseRecord) -> bool:
        """Whether the wave of a lease exists: it is deleted when all of its leases are closed."""
        return lease.wave is None or lease.wave in self.waves

    def build(self, worker: WorkerState, leases: Sequence[LeaseRecord]) -> LeaseBatch:
        """Build the message to one worker, with leases that were dealt at one time."""
        is_known = build_spec_key(self.run, self.setup.attempt) in worker.specs
        return LeaseBatch(
            run=self.run,
            incarnation=worker.incarnation,
            leases=[
                Lease(
                    id=lease.id,
                    run=self.run,
                    ranges=list(lease.ranges.ranges),
                    limit=lease.limit,
                    wave=None if lease.wave is None else self.waves[lease.wave],
                    lane=lease.lane,
                )
                for lease in leases
            ],
            start_by=leases[0].cut_at + START_WITHIN_S + worker.clock_ahead_s,
            period=self.period,
            spec=None if is_known else self.spec,
            setup=self.setup.attempt,
            setup_data="null" if is_known else self.setup.value,
            tickets=self.tickets,
            share=self.shares.find(worker.incarnation),
        )
