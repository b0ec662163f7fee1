"""The transport of a coordinator without a broker: each worker on its machine connects to its Unix socket.

Nothing is kept for a worker that is not connected, and nothing outlives this process. Leases, control and
checkpoints that get lost are sent again, as with a broker.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from oku_coordinator.broker.checkpoint_inbox import CheckpointInbox
from oku_coordinator.broker.inbound import Inbound
from oku_coordinator.broker.sender import Broker, Link
from oku_coordinator.broker.socket_hub import SocketHub
from oku_core.broker.frames import pack_message
from oku_core.broker.socket_url import open_unix_socket
from oku_core.messaging.codec import open_progress, read_sealed, seal_leases, seal_order
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import Intervals, Outbound, Stop
from oku_core.messaging.signing import (
    MalformedMessageError,
    MessageKind,
    Reject,
    RejectedMessageError,
    Signer,
)
from oku_core.process.listener import adopt_sockets
from oku_core.process.supervision import Supervisor, cancel_tasks

_LONGEST_PAUSE_S = 1.0
_ENDS_S = 5.0


class SocketTransport:
    """A socket that workers connect to.

    Args:
        path: where to listen.
        listen_fd: an inherited socket that listens there already.
        reject: called for each message that is dropped.

    Raises:
        UserError: the socket cannot be opened.
    """

    passing: tuple[type[Exception], ...] = ()

    def __init__(self, path: Path, listen_fd: int | None, signer: Signer, reject: Reject) -> None:
        listening = open_unix_socket(path) if listen_fd is None else adopt_sockets([listen_fd])[0]
        self._signer = signer
        self._reject = reject
        self._hub = SocketHub(listening, signer, reject)

    def build_inbound(self, supervisor: Supervisor) -> Inbound:
        """Build the way from the workers."""
        return SocketInbound(self._hub, self._signer, self._reject, supervisor)

    def build_broker(self, link: Link) -> Broker:
        """Build the way to the workers."""
        return SocketSender(self._hub, self._signer, link)


class SocketInbound(Inbound):
    """Receives in the event loop; a thread stores checkpoints."""

    refusal = ""

    def __init__(self, hub: SocketHub, signer: Signer, reject: Reject, supervisor: Supervisor) -> None:
        super().__init__()
        self._hub = hub
        self._signer = signer
        self._reject = reject
        self._supervisor = supervisor
        self._accepting: asyncio.Task[None] | None = None
        self._inbox = CheckpointInbox(
            signer, reject, supervisor.enlist("checkpoints", _LONGEST_PAUSE_S), self.store
        )

    @property
    def is_connected(self) -> bool:
        """Whether workers can connect."""
        return self._accepting is not None

    def may_miss_messages(self, now: float, behind_s: float) -> bool:
        """Whether messages of workers may be unread: checkpoints that the ledger does not take."""
        return not self.is_connected or self._inbox.is_behind(now, behind_s)

    def _listen(self) -> None:
        self._hub.open(self._receive, self.announce)
        self._inbox.start()
        self._accepting = self._supervisor.start("workers", self._hub.serve, _LONGEST_PAUSE_S)

    def end(self) -> None:
        """Accept no further connection; returns at once."""
        if self._accepting is not None:
            self._accepting.cancel()
        self._inbox.end()

    async def wait(self) -> None:
        """Wait until the last checkpoints are stored."""
        await cancel_tasks([self._accepting])
        await asyncio.to_thread(self._inbox.join, _ENDS_S)

    def _receive(self, kind: MessageKind, body: bytes) -> None:
        if kind == MessageKind.CHECKPOINT:
            self._inbox.put(body)
            return
        try:
            if kind != MessageKind.PROGRESS:
                raise MalformedMessageError(f"a worker sends a message of kind {kind}")
            progress = open_progress(self._signer, read_sealed(body))
        except RejectedMessageError as error:
            self._reject(error)
        else:
            self._loop.call_soon(self._handler.handle_progress, [progress])


class SocketSender(Broker):
    """Sends by the connections of a hub, from any thread once messages can come in."""

    def __init__(self, hub: SocketHub, signer: Signer, link: Link) -> None:
        super().__init__()
        self._hub = hub
        self._signer = signer
        self._link = link

    @property
    def is_away(self) -> bool:
        """Whether workers cannot connect yet."""
        return not self._link.is_connected

    def send(self, messages: Iterable[Outbound]) -> None:
        """Write messages to the connections of their workers."""
        if self._link.is_connected:
            self._hub.post([self._pack(message) for message in messages])

    def fetch_peak_mb(self) -> float | None:
        """There is no broker."""
        return None

    def end(self, wait_s: float) -> None:
        """Send waiting frames, and close every connection."""
        self._hub.close(wait_s)

    def _pack(self, message: Outbound) -> tuple[str, bytes]:
        if isinstance(message, LeaseBatch):
            sealed = seal_leases(self._signer, message)
            return message.incarnation, pack_message(MessageKind.LEASE, sealed)
        to = "" if isinstance(message, Stop | Intervals) else message.incarnation
        return to, pack_message(MessageKind.ORDER, seal_order(self._signer, message))
