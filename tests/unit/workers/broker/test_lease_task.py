import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from celery import Celery
from oku_workers.leases.reports import WorkerIdentity, build_empty_report
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.messaging.celery_app import LEASE_TASK, build_app
from oku_core.messaging.codec import seal_lease
from oku_core.messaging.lease import Claim, Lease, Message, Report, find_fault
from oku_core.messaging.signing import PROTOCOL, MessageKind, Signer
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.broker import lease_task
from oku_workers.engines.engine_error import EngineError

SIGNER = Signer(MESSAGE_KEY)
WORKER = WorkerIdentity("w1", "b1")


class FakeLoopThread:
    """Does at once what it is asked."""

    def await_result(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine."""
        return asyncio.run(coroutine)

    def ask(self, call: Callable[[], Any]) -> Any:
        """Call a function."""
        return call()


class FakeRunner:
    """Runs a lease by saying so."""

    def __init__(self, diary: list[object]) -> None:
        self.is_stopping = False
        self.is_doubled = False
        self.error: Exception | None = None
        self._diary = diary

    async def run(self, lease: Lease, execution_id: str) -> Report | None:
        """As the lease runner."""
        self._diary.append(("run", lease.id))
        if self.error is not None:
            raise self.error
        if self.is_doubled:
            return None
        return build_empty_report(WORKER, lease, execution_id, 1.0)

    def fill_slot(self, lease: str, seconds: float) -> None:
        """As the lease runner."""
        assert seconds > 0
        self._diary.append(("filled a slot", lease))

    def forget(self, lease: str) -> None:
        """As the lease runner."""
        self._diary.append(("forgotten", lease))


class Desk:
    """The task with everything around it in memory; `diary` is what happened, in order."""

    def __init__(self) -> None:
        self.diary: list[object] = []
        self.runner = FakeRunner(self.diary)
        self.app = build_app("memory://", MESSAGE_KEY)
        loop_thread: Any = FakeLoopThread()
        runner: Any = self.runner
        lease_task.LeaseTask(self.app, loop_thread, runner, WORKER, time.time).register()

    def send(self, _: Celery, message: Message) -> None:
        """Stands for `send_message`."""
        self.diary.append(message)

    def deliver(self, document: object, *, redelivered: bool = False) -> None:
        """Run the task as Celery does."""
        task = self.app.tasks[LEASE_TASK]
        task.push_request(delivery_info={"redelivered": redelivered})
        try:
            task.run(document)
        finally:
            task.pop_request()

    @property
    def messages(self) -> list[Message]:
        """What was sent to the coordinator."""
        return [entry for entry in self.diary if isinstance(entry, Claim | Report)]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose messages stay on it."""
    desk = Desk()
    monkeypatch.setattr(lease_task, "send_message", desk.send)
    return desk


def build_document(**changes: Any) -> Any:
    """A lease as it travels."""
    lease = Lease(
        id="l1", run="r1", start=5, stop=9, start_by=time.time() + 60, spec=Spec(urls=(Url("http://h/"),))
    )
    return seal_lease(SIGNER, msgspec.structs.replace(lease, **changes))


def test_a_lease_is_claimed_run_reported_and_forgotten(desk: Desk) -> None:
    """It counts as under way until its report has reached the broker."""
    desk.deliver(build_document())
    claim, run, report, forgotten = desk.diary
    assert isinstance(claim, Claim)
    assert isinstance(report, Report)
    assert (claim.lease, claim.worker, claim.incarnation) == ("l1", "w1", "b1")
    assert (run, forgotten) == (("run", "l1"), ("forgotten", "l1"))
    assert report.execution == claim.execution


def test_each_attempt_has_an_id_of_its_own(desk: Desk) -> None:
    """The coordinator can tell a doubled message from the first."""
    desk.deliver(build_document())
    desk.deliver(build_document())
    assert len({message.execution for message in desk.messages}) == 2


@pytest.mark.parametrize("document", [None, "lease", {}, {"id": "l1"}, [1, 2]])
def test_what_is_not_a_lease_is_dropped(desk: Desk, document: object) -> None:
    """Nobody can answer it."""
    desk.deliver(document)
    assert desk.diary == []


def assert_given_back(desk: Desk) -> None:
    """Assert that all of the lease was given back, unbegun."""
    (report,) = desk.diary
    assert isinstance(report, Report)
    assert (report.lease, report.start, report.done) == ("l1", 5, 5)


def test_a_stale_lease_is_given_back(desk: Desk) -> None:
    """Another worker may have it by now."""
    desk.deliver(build_document(start_by=time.time() - 1))
    assert_given_back(desk)


def test_a_lease_that_was_delivered_before_is_given_back(desk: Desk) -> None:
    """Whoever had it first may have sent its requests."""
    desk.deliver(build_document(), redelivered=True)
    assert_given_back(desk)


def test_a_worker_that_leaves_gives_back_what_comes(desk: Desk) -> None:
    """It would not finish it."""
    desk.runner.is_stopping = True
    desk.deliver(build_document())
    assert_given_back(desk)


def test_a_doubled_lease_is_not_reported_twice(desk: Desk) -> None:
    """The first attempt is still under way, and will report it."""
    desk.runner.is_doubled = True
    desk.deliver(build_document())
    assert [type(message) for message in desk.messages] == [Claim]
    assert ("forgotten", "l1") not in desk.diary


def test_a_fault_of_our_own_is_not_reported_as_a_result(desk: Desk) -> None:
    """The task fails loudly, and the coordinator takes the lease back when no worker names it any more."""
    desk.runner.error = RuntimeError("a fault of our own")
    with pytest.raises(RuntimeError, match="a fault of our own"):
        desk.deliver(build_document())
    assert [type(message) for message in desk.messages] == [Claim]


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ({"start_by": 0.0}, "is given back: its message is stale"),
        ({"is_doubled": True}, "arrived twice"),
        ({"error": EngineError("no such file")}, "cannot be carried out here: no such file"),
        ({"error": RuntimeError("oops")}, "failed: RuntimeError: oops"),
    ],
)
def test_what_is_said_of_a_lease_names_it(
    desk: Desk, caplog: pytest.LogCaptureFixture, case: dict[str, Any], sentence: str
) -> None:
    """The log line names it in its text, and lease and run in fields that a program can look for."""
    document = build_document(start_by=case.pop("start_by", time.time() + 60))
    for name, value in case.items():
        setattr(desk.runner, name, value)
    with caplog.at_level(logging.INFO), contextlib.suppress(RuntimeError):
        desk.deliver(document)
    (record,) = caplog.records
    assert record.getMessage() == f"lease l1 {sentence}"
    assert (record.__dict__["run"], record.__dict__["lease"]) == ("r1", "l1")


def test_a_spec_that_cannot_be_carried_out_here_is_refused(desk: Desk) -> None:
    """All of it is given back with the reason, cut to what a report may say."""
    desk.runner.error = EngineError("cacert /ca.pem cannot be used: " + "No such file " * 100)
    desk.deliver(build_document())
    claim, report = desk.messages
    assert desk.diary[-1] == ("filled a slot", "l1")
    assert isinstance(claim, Claim)
    assert isinstance(report, Report)
    assert report.refusal.startswith("cacert /ca.pem cannot be used: No such file")
    assert (report.start, report.done, find_fault(report, 5, 9)) == (5, 5, None)


def test_a_lease_of_another_version_is_refused(desk: Desk) -> None:
    """Nobody else knows that this worker cannot read it; both versions are named."""
    body = b'{"id": "l1", "run": "r1", "start": 5, "ranges": [[5, 9]]}'
    desk.deliver(msgspec.to_builtins(SIGNER.seal(MessageKind.LEASE, body, PROTOCOL + 1)))
    [report] = desk.messages
    assert isinstance(report, Report)
    assert (report.lease, report.start, report.done, find_fault(report, 5, 9)) == ("l1", 5, 5, None)
    assert f"the coordinator speaks protocol {PROTOCOL + 1}, this worker {PROTOCOL}" in report.refusal


def test_a_lease_with_a_part_that_is_not_understood_is_refused(desk: Desk) -> None:
    """The line fits into a report, however much there is that is wrong."""
    lease = msgspec.json.decode(build_document()["body"])
    body = msgspec.json.encode(lease | {"spec": {"k" * 1000: 1}})
    desk.deliver(msgspec.to_builtins(SIGNER.seal(MessageKind.LEASE, body)))
    [report] = desk.messages
    assert isinstance(report, Report)
    assert report.refusal.startswith("the lease cannot be read: ")
    assert find_fault(report, 5, 9) is None
