"""What a process gives its leases: its name, its ways to the broker, and what they ask of it."""

from dataclasses import dataclass, field
from typing import Protocol

from oku_core.process.supervision import Supervisor
from oku_workers.engines.user_code.hook_caller import request_hook
from oku_workers.flight.flight_recorder import FlightRecorder, NoRecorder
from oku_workers.leases.checkpointer import CheckpointSink
from oku_workers.leases.hook_runner import HookCaller
from oku_workers.settings import WorkerIdentity


class WorkerProcess(Protocol):
    """The process of a worker, as its leases know it."""

    def renew(self) -> None:
        """Leave, for a fresh process: the run is over whose user code this one has run."""

    def send_progress(self) -> None:
        """Send progress at once."""


class _NoProcess:
    """A process that stays as it is."""

    def renew(self) -> None:
        """It stays."""

    def send_progress(self) -> None:
        """It is sent in time."""


@dataclass(frozen=True, kw_only=True)
class WorkerParts:
    """What a process gives its leases.

    Attributes:
        worker: whose leases they are.
        supervisor: knows the troubles of the process.
        sink: gives checkpoints to the broker.
        process: of the worker.
        recorder: keeps how far the leases have gone, for the case of a death.
        call: calls a hook of user code.
    """

    worker: WorkerIdentity
    supervisor: Supervisor
    sink: CheckpointSink
    process: WorkerProcess = field(default_factory=_NoProcess)
    recorder: FlightRecorder = field(default_factory=NoRecorder)
    call: HookCaller = request_hook
