"""A broker in memory that remembers what the coordinator sends to workers."""

from collections.abc import Iterable

from oku_coordinator.broker.sender import Broker
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import (
    CallHook,
    ClockNotice,
    Control,
    DropHooks,
    Fetch,
    FilesAddress,
    Outbound,
    Stop,
)


class BrokerTwin(Broker):
    """Takes everything at once, as long as it answers.

    Args:
        peak_mb: its peak memory, if that is known.
    """

    def __init__(self, peak_mb: float | None = None) -> None:
        self.answers = True
        self.peak_mb = peak_mb
        super().__init__()
        self.batches: list[LeaseBatch] = []
        self.controls: list[Control] = []
        self.stops: list[tuple[str, int, float]] = []
        self.fetches: list[Fetch] = []
        self.hooks: list[CallHook | DropHooks] = []
        self.stop_times: list[float | None] = []
        self.intervals_s: list[tuple[float, float]] = []
        self.clocks: list[ClockNotice | None] = []
        self.turns: list[str] = []

    @property
    def leases(self) -> list[Lease]:
        """All leases that were sent."""
        return [lease for batch in self.batches for lease in batch.leases]

    @property
    def ends(self) -> list[tuple[str, dict[str, int]]]:
        """The ends that workers were asked for, by incarnation."""
        return [(control.incarnation, control.ends) for control in self.controls if control.ends]

    @property
    def is_connected(self) -> bool:
        """Whether it answers."""
        return self.answers

    @property
    def is_away(self) -> bool:
        """Whether it does not answer."""
        return not self.answers

    def end(self, wait_s: float) -> None:
        """Nothing waits."""

    def fetch_peak_mb(self) -> float | None:
        """Give what was set."""
        return self.peak_mb

    def send(self, messages: Iterable[Outbound]) -> None:
        """Take leases and orders."""
        for message in messages:
            match message:
                case LeaseBatch():
                    self.batches.append(message)
                case Control():
                    self.controls.append(message)
                case Stop():
                    self.stops.append((message.run, message.up_to, message.grace_s))
                    self.stop_times.append(message.at)
                case Fetch():
                    self.fetches.append(message)
                case CallHook() | DropHooks():
                    self.hooks.append(message)

    def send_intervals(
        self,
        heartbeat_s: float,
        checkpoint_s: float,
        clock: ClockNotice | None = None,
        files: FilesAddress | None = None,
        run: str = "",
    ) -> None:
        """Take intervals, the clock, where files are, and whose turn it is."""
        self.turns.append(run)
        self.files_address = files
        self.intervals_s.append((heartbeat_s, checkpoint_s))
        self.clocks.append(clock)
