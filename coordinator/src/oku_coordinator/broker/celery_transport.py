"""The transport of a coordinator over a broker: a sender, and two listeners for checkpoints and progress."""

import asyncio

from oku_coordinator.broker.celery_sender import CelerySender
from oku_coordinator.broker.inbound import Inbound
from oku_coordinator.broker.listeners import LONGEST_PAUSE_S, CheckpointListener, ProgressListener
from oku_coordinator.broker.sender import Broker, Link
from oku_core.broker.celery_app import App, build_app
from oku_core.broker.transport import find_connection_errors
from oku_core.messaging.signing import Reject
from oku_core.process.supervision import Supervisor

_LISTENER_ENDS_S = 5.0


class CeleryTransport:
    """One application of Celery, whose queues lead to the workers and back."""

    def __init__(self, broker_url: str, message_key: bytes, reject: Reject) -> None:
        self._app = build_app(broker_url, message_key, reject)
        self.passing = find_connection_errors(self._app)

    def build_inbound(self, supervisor: Supervisor) -> Inbound:
        """Build the listeners."""
        return CeleryInbound(self._app, supervisor)

    def build_broker(self, link: Link) -> Broker:
        """Build the sender."""
        return CelerySender(self._app, link)


class CeleryInbound(Inbound):
    """Two listeners, each a thread."""

    def __init__(self, app: App, supervisor: Supervisor) -> None:
        super().__init__()
        self.checkpoints = CheckpointListener(
            app, supervisor.enlist("checkpoints", LONGEST_PAUSE_S), self.store, self.announce
        )
        self.progress = ProgressListener(
            app,
            supervisor.enlist("progress", LONGEST_PAUSE_S),
            self.pass_on,
            self.may_decode,
            self.announce,
        )

    @property
    def is_connected(self) -> bool:
        """Whether the broker is reachable and accepts requests."""
        return self.checkpoints.is_connected and self.progress.is_connected and not self.refusal

    @property
    def refusal(self) -> str:
        """Why the broker refuses requests, in its own words; empty if it accepts them."""
        return self.checkpoints.refusal or self.progress.refusal

    def may_miss_messages(self, now: float, behind_s: float) -> bool:
        """Whether messages of workers may be unread: the broker is down, or a listener is behind."""
        caught_up_at = min(self.progress.caught_up_at, self.checkpoints.caught_up_at)
        return not self.progress.is_connected or now - caught_up_at > behind_s

    def _listen(self) -> None:
        self.checkpoints.start()
        self.progress.start()

    def end(self) -> None:
        """Stop the listeners; returns at once."""
        self.checkpoints.end()
        self.progress.end()

    async def wait(self) -> None:
        """Wait until the last checkpoints are stored."""
        await asyncio.to_thread(self.checkpoints.join, _LISTENER_ENDS_S)
