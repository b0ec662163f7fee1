"""The two ways between a worker and its coordinator: Celery over a broker, and a Unix socket without one.

Both carry the same sealed messages, and both may lose any of them. The URL of the broker decides. Celery is
loaded only for a broker: it takes a third of a second.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from oku_core.broker.socket_url import find_socket_path
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.signing import Reject, Signer
from oku_workers.broker.coordinator_link import Notify, WorkerInbox
from oku_workers.health.heartbeat import ProgressChannel
from oku_workers.settings import WorkerIdentity


class WorkerTransport(Protocol):
    """The way of one process to its coordinator and back."""

    @property
    def passing(self) -> tuple[type[Exception], ...]:
        """Errors of connections, which pass by themselves."""

    @property
    def is_cut(self) -> bool:
        """Whether certainly nothing of the coordinator is on its way here."""

    def run(self, inbox: WorkerInbox, on_started: Notify, on_ready: Notify) -> int:
        """Receive messages, in the main thread, until `end`; return an exit code.

        Args:
            inbox: takes messages.
            on_started: called in the main thread once signals may be handled.
            on_ready: called once leases can arrive.
        """

    def end(self) -> None:
        """Let `run` return soon; any thread may call this."""

    def send_checkpoints(self, batch: CheckpointBatch) -> None:
        """Send checkpoints, from any thread; raise an error of the transport if that fails."""

    def open_progress_channel(self) -> AbstractContextManager[ProgressChannel]:
        """Connect for heartbeats."""


def build_worker_transport(
    broker_url: str, message_key: bytes, worker: WorkerIdentity, reject: Reject
) -> WorkerTransport:
    """Build the transport that a URL names.

    Args:
        broker_url: the URL.
        message_key: signs messages.
        worker: the process.
        reject: called for each message that is dropped.

    Raises:
        UserError: it names none.
    """
    if (path := find_socket_path(broker_url)) is not None:
        from oku_workers.broker.socket_client import SocketClient  # noqa: PLC0415

        return SocketClient(path, Signer(message_key), worker.incarnation, reject)
    from oku_workers.broker.celery_worker import CeleryWorkerTransport  # noqa: PLC0415

    return CeleryWorkerTransport(broker_url, message_key, worker, reject)
