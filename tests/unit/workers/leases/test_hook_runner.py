"""A worker calls each attempt once, and tells what came of it until it is told to forget it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import LONGEST_HOOK_ERROR, MOST_RESULT_BYTES, HookAttempt, HookReport
from oku_core.messaging.order import CallHook, DropHooks
from oku_core.process.clock import SteadyClock
from oku_core.process.redaction import hide
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Hook, Spec
from oku_core.user_code.messages import Returned
from oku_workers.engines.contract.engine_protocol import EngineContext
from oku_workers.engines.user_code.hook_caller import HostLostError
from oku_workers.leases.hook_runner import HookRunner
from oku_workers.runs.engine_switch import EngineSwitch
from oku_workers.runs.run_sources import RunSources
from oku_workers.settings import WorkerIdentity

SETUP = HookAttempt("r1", Hook.SETUP, 1)


async def _call_here(call: Callable[[], Any]) -> Any:
    """No thread: the clock of the test would not wait for it."""
    return call()


class Desk:
    """A runner whose hooks end when the test says so, and a broker that may refuse messages."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.sent: list[HookReport] = []
        self.refuses = 0
        self.calls: list[HookAttempt] = []
        self.contexts: list[EngineContext] = []
        self.ending: asyncio.Future[Returned] = asyncio.get_running_loop().create_future()
        engines = EngineSwitch(Supervisor(), RunSources(run_blocking=_call_here))
        self.runner = HookRunner(
            WorkerIdentity("w1", "b1"),
            engines,
            self,
            SteadyClock(lambda: self.now, lambda: self.now),
            self._call,
        )

    async def send(self, batch: CheckpointBatch) -> None:
        """Take a message, or refuse it."""
        if self.refuses:
            self.refuses -= 1
            raise ConnectionError("the broker is away")
        assert (batch.worker, batch.incarnation, batch.checkpoints) == ("w1", "b1", [])
        self.sent += batch.hooks

    async def _call(self, attempt: HookAttempt, _: Spec, context: EngineContext, limit_s: float) -> Returned:
        assert limit_s == 600.0
        self.calls.append(attempt)
        self.contexts.append(context)
        return await self.ending

    def order(self, attempt: HookAttempt = SETUP, **changes: Any) -> None:
        """The coordinator orders an attempt."""
        fields: dict[str, Any] = {
            "incarnation": "b1", "attempt": attempt, "spec": Spec(engine=Engine.PYTHON), "limit_s": 600.0,
            "start_by": 1010.0,
        }  # fmt: skip
        self.runner.accept(CallHook(**(fields | changes)))

    def drop(self, *attempts: HookAttempt, incarnation: str = "b1") -> None:
        """The coordinator has them forgotten."""
        self.runner.drop(DropHooks(incarnation=incarnation, attempts=list(attempts)))


@pytest.fixture
async def desk() -> Desk:
    """Nothing was ordered yet."""
    return Desk()


async def test_what_came_of_an_attempt_is_told_until_it_is_dropped(desk: Desk) -> None:
    """A broker that is away makes no difference."""
    desk.refuses = 2
    desk.order(setup_data="7")
    desk.ending.set_result(Returned('{"a":1}'))
    await asyncio.sleep(60.0)
    assert len(desk.sent) > 3
    assert set(map(repr, desk.sent)) == {repr(HookReport(attempt=SETUP, value='{"a":1}'))}
    assert desk.contexts[0].setup_data == "7"
    desk.drop(SETUP, incarnation="b2")
    assert desk.runner.attempts == [SETUP]
    desk.drop(SETUP)
    told = len(desk.sent)
    await asyncio.sleep(60.0)
    assert (len(desk.sent), desk.runner.attempts) == (told, [])
    desk.order(setup_data="7")
    assert not desk.runner.attempts


async def test_an_attempt_is_called_once() -> None:
    """Orders are repeated, and may come late."""
    desk = Desk()
    desk.order()
    await asyncio.sleep(1.0)
    desk.order()
    desk.order(HookAttempt("r1", Hook.SETUP, 2), incarnation="b2")
    desk.order(HookAttempt("r2", Hook.SETUP, 1), start_by=999.0)
    await asyncio.sleep(1.0)
    assert desk.calls == desk.runner.attempts == [SETUP]
    await desk.runner.close()
    # An attempt that is dropped before it comes is not called. Neither is an older one.
    desk = Desk()
    desk.drop(HookAttempt("r1", Hook.SETUP, 2))
    desk.order()
    desk.order(HookAttempt("r1", Hook.SETUP, 2))
    await asyncio.sleep(1.0)
    assert not desk.calls
    # A worker that leaves ends its hooks. The coordinator gives them to another one.
    desk = Desk()
    desk.order()
    await asyncio.sleep(1.0)
    desk.runner.drop_all()
    await asyncio.sleep(1.0)
    assert desk.ending.cancelled()
    assert not desk.runner.attempts
    assert not desk.sent


@pytest.mark.parametrize(
    "error", [HostLostError("its process has ended (SIGKILL)"), RuntimeError("a defect")]
)
async def test_a_call_that_has_no_answer_is_told_as_lost(desk: Desk, error: Exception) -> None:
    """Another attempt may fare better."""
    desk.order()
    desk.ending.set_exception(error)
    await asyncio.sleep(0.5)
    assert [(report.is_lost, str(error) in report.error) for report in desk.sent] == [(True, True)]
    await desk.runner.close()


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (Returned(error="KeyError: 'runner-hunter2'"), "KeyError: '***'"),
        (Returned(error="a\nb\x00" + "c" * 400), "a b?" + "c" * (LONGEST_HOOK_ERROR - 4)),
        (Returned("no json"), "a hook returned what cannot be read: is not JSON: "),
        (Returned('"' + "x" * MOST_RESULT_BYTES + '"'), "a hook returned more than 1048576 bytes"),
    ],
    ids=["a secret", "a long error of several lines", "what is not JSON", "too much"],
)
async def test_what_user_code_says_is_made_fit_for_the_ledger(
    desk: Desk, returned: Returned, error: str
) -> None:
    """It can write to the socket itself."""
    hide("runner-hunter2")
    desk.order()
    desk.ending.set_result(returned)
    await asyncio.sleep(0.5)
    assert desk.sent[0].error.startswith(error)
    assert desk.sent[0].find_fault() is None
    await desk.runner.close()


async def test_a_hook_of_another_run_is_not_called_where_user_code_has_run(desk: Desk) -> None:
    """Its worker is about to be replaced, and the coordinator orders it again."""
    desk.order()
    await asyncio.sleep(1.0)
    desk.order(HookAttempt("r2", Hook.SETUP, 1))
    desk.order(HookAttempt("r1", Hook.TEARDOWN, 1))
    await asyncio.sleep(1.0)
    assert desk.calls == [SETUP, HookAttempt("r1", Hook.TEARDOWN, 1)]
    await desk.runner.close()
