import signal
from typing import Any, Self

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change, read
from tests.kit.runs.begun_run import build_begun

from oku_cli.backends.client import BegunRun
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.backends.data_dir import DataDir, RunningStack
from oku_cli.exit_code import ExitCode
from oku_cli.follow.run_start import RunStart
from oku_cli.follow.watch import Watch
from oku_cli.local import joined_run
from oku_cli.local.joined_run import JoinedRun
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process.interrupt import InterruptedAtOnceError, Interrupts, SignalAction
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec

PLAN = StackPlan(workers=1, servers=0, delay="0s", seed=0)
SPEC = Spec(requests=5)


class Ending:
    """The command that keeps the stack: it ends when its run has been followed by another one.

    Args:
        number: a signal that the other command gets at the same moment.
    """

    def __init__(self, folder: DataDir, number: signal.Signals | None) -> None:
        self._folder, self._number = folder, number
        folder.hold()
        shape = PLAN.describe(folder.keep_message_key())
        folder.write_stack(RunningStack("http://127.0.0.1:9", "token", 4711, {}, shape))

    async def __aenter__(self) -> Self:
        """Connect."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""

    def __call__(self, *arguments: Any) -> "Ending":
        """Take the place of `Client` and of `Follower`."""
        self._interrupts = arguments[-1]
        return self

    async def follow(self, *_: object) -> None:
        """End instead of an answer."""
        self._folder.release()
        if self._number is not None:
            signal.raise_signal(self._number)
            await self._interrupts.next_signal()
        raise UnreachableError("no answer")


@pytest.fixture
def folder(tmp_path: Any) -> DataDir:
    """A folder with a run that is under way."""
    folder = DataDir(tmp_path)
    with folder.held():
        ledger = open_ledger(folder.ledger)
        change(ledger, create_run, "r1", SPEC, 1.0)
        change(ledger, change_state, "r1", RunState.RUNNING, 2.0)
        ledger.close()
    return folder


async def join(
    folder: DataDir, monkeypatch: pytest.MonkeyPatch, number: signal.Signals | None, action: SignalAction
) -> tuple[ExitCode | None, RunState]:
    """Follow the run on a stack that ends; gives the exit code, and the state of the run then."""
    ending = Ending(DataDir(folder.absolute), number)
    monkeypatch.setattr(joined_run, "Client", ending)
    monkeypatch.setattr(joined_run, "Follower", ending)

    async def send(*_: object, **__: object) -> BegunRun:
        return build_begun()

    monkeypatch.setattr(joined_run, "send_start", send)
    start = RunStart(send=send, resumed="r1")
    run = JoinedRun(folder, PLAN, start, Watch(quiet=True), Interrupts(action))
    code = await run.carry_out()
    ledger = open_ledger(folder.ledger)
    state = read(ledger, fetch_run, "r1").state
    ledger.close()
    return code, state


async def test_a_run_goes_on_when_its_stack_ends(folder: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is to start a stack then."""
    code, state = await join(folder, monkeypatch, None, SignalAction.PAUSE)
    assert (code, state) == (None, RunState.RUNNING)


@pytest.mark.parametrize(
    ("action", "wanted"),
    [(SignalAction.PAUSE, RunState.PAUSED), (SignalAction.CANCEL, RunState.CANCELLED)],
)
async def test_a_signal_that_comes_when_the_stack_ends_holds(
    folder: DataDir, monkeypatch: pytest.MonkeyPatch, action: SignalAction, wanted: RunState
) -> None:
    """The run is left paused or cancelled."""
    code, state = await join(folder, monkeypatch, signal.SIGTERM, action)
    assert (code, state) == (ExitCode.CUT_SHORT, wanted)


async def test_a_signal_ends_the_wait_for_another_stack(folder: DataDir) -> None:
    """Here its command is still starting it."""
    other = DataDir(folder.absolute)
    with other.held():
        interrupts = Interrupts()
        signal.raise_signal(signal.SIGINT)
        start = RunStart.resume("r1", SPEC)
        with pytest.raises(InterruptedAtOnceError, match="interrupted, run r1 was not resumed"):
            await JoinedRun(folder, PLAN, start, Watch(quiet=True), interrupts).carry_out()
