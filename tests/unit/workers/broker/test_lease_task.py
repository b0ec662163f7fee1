import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.workers.counting_watchdog import CountingWatchdog
from tests.kit.workers.whole_share import build_whole_share

from oku_core.broker.celery_app import LEASE_TASK, build_app
from oku_core.messaging.codec import LeaseBatchHead, seal_leases
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.signing import PROTOCOL, MessageKind, Signer
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.broker.celery_worker import register_lease_task
from oku_workers.broker.orders import LeaseReceiver

if TYPE_CHECKING:
    from oku_core.messaging.signing import RejectedMessageError

SIGNER = Signer(MESSAGE_KEY)


class FakeLoopThread:
    """Does at once what it is asked."""

    def ask(self, call: Callable[[], Any]) -> Any:
        """Call a function."""
        return call()


class FakeRunner:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[LeaseBatch] = []
        self.refused: list[tuple[LeaseBatchHead, str]] = []

    def refuse(self, head: LeaseBatchHead, reason: str) -> None:
        """As the lease runner."""
        self.refused.append((head, reason))

    def accept(self, batch: LeaseBatch) -> None:
        """As the lease runner."""
        self.batches.append(batch)


class Desk:
    """The task with everything around it in memory."""

    def __init__(self) -> None:
        self.runner = FakeRunner()
        self.rejected: list[RejectedMessageError] = []
        self.app = build_app("memory://", MESSAGE_KEY)
        self.watchdog = CountingWatchdog()
        parts: Any = (self.rejected.append, FakeLoopThread(), self.runner, self.watchdog)
        self.take_leases = LeaseReceiver(*parts).take
        inbox: Any = self
        register_lease_task(self.app, inbox)

    def deliver(self, document: object) -> None:
        """Run the task as Celery does."""
        self.app.tasks[LEASE_TASK].run(document)


@pytest.fixture
def desk() -> Desk:
    """A desk that has had no message."""
    return Desk()


def build_batch() -> LeaseBatch:
    """A lease of two ranges, with its spec."""
    lease = Lease(id="r1.000000001.aa", run="r1", ranges=[(5, 9), (20, 30)], limit=4)
    spec = Spec(urls=(Url("http://h/"),))
    return LeaseBatch(
        run="r1",
        incarnation="b1",
        leases=[lease],
        start_by=time.time() + 60,
        spec=spec,
        share=build_whole_share("r1"),
    )


@pytest.mark.parametrize("document", [None, "lease", {}, {"run": "r1"}, [1, 2]])
def test_what_is_not_a_message_of_leases_is_dropped(desk: Desk, document: object) -> None:
    """Nobody can answer it; it is counted as heard, and as rejected."""
    desk.deliver(document)
    assert desk.runner.batches == []
    assert (desk.watchdog.messages, len(desk.rejected)) == (1, 1)


def test_leases_reach_the_lease_runner() -> None:
    """They arrive as they were sent, and are counted."""
    desk = Desk()
    batch = build_batch()
    desk.deliver(seal_leases(SIGNER, batch))
    assert desk.runner.batches == [batch]
    assert (desk.watchdog.messages, desk.rejected) == (1, [])
    # What is signed with another key is dropped. Whoever reaches the broker could make load otherwise.
    desk = Desk()
    desk.deliver(seal_leases(Signer(b"another key of some length"), build_batch()))
    assert desk.runner.batches == []
    assert "not signed" in str(desk.rejected[0])


def test_leases_of_another_version_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody else knows that this worker cannot read them; both versions are named, to the log as well."""
    desk = Desk()
    body = b'{"run": "r1", "incarnation": "b1", "leases": [{"id": "l1", "lanes": 3}]}'
    desk.deliver(msgspec.to_builtins(SIGNER.seal(MessageKind.LEASE, body, PROTOCOL + 1)))
    [(head, reason)] = desk.runner.refused
    assert (head.run, [lease.id for lease in head.leases]) == ("r1", ["l1"])
    assert f"the coordinator speaks protocol {PROTOCOL + 1}, this worker {PROTOCOL}" in reason
    assert reason in caplog.text
    # Leases with a part that is not understood are refused. Their spec may be newer than this worker.
    desk = Desk()
    batch = msgspec.json.decode(msgspec.json.encode(seal_leases(SIGNER, build_batch())))
    body = msgspec.json.encode(msgspec.json.decode(batch["body"]) | {"spec": {"k" * 1000: 1}})
    desk.deliver(msgspec.to_builtins(SIGNER.seal(MessageKind.LEASE, body)))
    [(head, reason)] = desk.runner.refused
    assert [lease.id for lease in head.leases] == ["r1.000000001.aa"]
    assert reason.startswith("the lease cannot be read: ")
