import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.transactions import change, read

from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.run_start import RunStart
from oku_cli.follow.watch import Watch
from oku_cli.local import folder_runs
from oku_cli.local.folder_runs import KeyedSpec, LocalOnce
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process.interrupt import InterruptedAtOnceError, Interrupts
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.spec.spec import Spec

SPEC = Spec(requests=5)
PLAN = StackPlan(workers=1, servers=1, delay="0s", seed=0)
DAYS_S = 86_400.0
Run = Callable[..., Any]


class Stack:
    """Takes the place of a local stack: notes the runs that it is to make."""

    def __init__(self) -> None:
        self.started: list[str | None] = []

    async def run_locally(
        self, _: DataDir, _plan: StackPlan, start: RunStart, _watch: Watch, _interrupts: Interrupts
    ) -> ExitCode:
        """Make a run: None for a new one, else the one that is resumed."""
        self.started.append(start.resumed)
        return ExitCode.COMPLETED


@pytest.fixture
def folder(tmp_path: Path) -> DataDir:
    """A data folder without a ledger."""
    folder = DataDir(tmp_path / "data")
    with folder.held():
        pass
    return folder


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack that makes runs at once."""
    stack = Stack()
    monkeypatch.setattr(folder_runs, "run_locally", stack.run_locally)
    monkeypatch.setattr(folder_runs, "POLL_S", 0.0)
    return stack


@pytest.fixture
def ledger(folder: DataDir) -> Iterator[Ledger]:
    """Its ledger."""
    with closing(Ledger(folder.ledger)) as ledger:
        yield ledger


async def carry_out(folder: DataDir, spec: Spec = SPEC, key: str = "k1", **watch: Any) -> ExitCode:
    """Make a run with a key."""
    keyed = KeyedSpec(key, spec, 30 * DAYS_S)
    start = RunStart.submit(spec, (), key)
    return await LocalOnce(folder, PLAN, start, keyed, Watch(quiet=True, **watch)).carry_out()


async def test_a_run_is_made_if_the_folder_has_none_with_the_key(
    folder: DataDir, stack: Stack, ledger: Ledger
) -> None:
    """Others have nothing to do with it, with or without a key."""
    change(ledger, create_run, "r1", SPEC, 1.0, "k2")
    change(ledger, create_run, "r2", SPEC, 1.0)
    assert await carry_out(folder) is ExitCode.COMPLETED
    assert stack.started == [None]


async def test_a_run_that_is_paused_or_was_interrupted_is_resumed(
    folder: DataDir, stack: Stack, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that a killed stack left active is paused first, as any command in the folder does."""
    change(ledger, create_run, "r1", SPEC, 1.0, "k1")
    change(ledger, change_state, "r1", RunState.RUNNING, 2.0)
    for _ in ("interrupted", "paused"):
        assert await carry_out(folder) is ExitCode.COMPLETED
        assert read(ledger, fetch_run, "r1").state is RunState.PAUSED
        assert capsys.readouterr().err == "run r1 has the key k1 and is paused\n"
    assert stack.started == ["r1", "r1"]


async def test_a_run_that_is_over_is_shown_without_a_stack(
    folder: DataDir, stack: Stack, ledger: Ledger, tmp_path: Path
) -> None:
    """Its exit code and its files are those of the first time."""
    change(ledger, create_run, "r1", SPEC, 1.0, "k1")
    change(ledger, change_state, "r1", RunState.CANCELLED, 2.0, "enough")
    file = tmp_path / "oku.xml"
    assert await carry_out(folder, junit_file=str(file)) is ExitCode.CUT_SHORT
    assert "the run is cancelled: enough" in file.read_text()
    assert stack.started == []


async def test_another_spec_is_refused(folder: DataDir, stack: Stack, ledger: Ledger) -> None:
    """The line names the folder, the run and what differs."""
    change(ledger, create_run, "r1", SPEC, 1.0, "k1")
    said = r"data: key k1 belongs to run r1, which has another spec \(it differs in requests\)"
    with pytest.raises(UserError, match=said):
        await carry_out(folder, Spec(requests=6))
    assert stack.started == []


async def test_a_deleted_run_is_not_sent_again_before_its_key_is_forgotten(
    folder: DataDir, stack: Stack, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the state was in which it was deleted."""
    change(ledger, create_run, "r1", SPEC, 1.0, "k1")
    change(ledger, change_state, "r1", RunState.PAUSED, 2.0)
    await LedgerBackend(folder).delete("r1")
    assert await carry_out(folder) is ExitCode.CUT_SHORT
    assert stack.started == []
    later = time.time() + 30 * DAYS_S + 60
    monkeypatch.setattr("time.time", lambda: later)
    assert await carry_out(folder) is ExitCode.COMPLETED
    assert stack.started == [None]


async def test_a_signal_ends_the_wait_for_a_folder(
    folder: DataDir, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command is just starting its stack there."""
    monkeypatch.setattr(folder_runs, "POLL_S", 10.0)
    other = DataDir(folder.absolute)
    with other.held():
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        with pytest.raises(InterruptedAtOnceError, match="interrupted, no run was begun"):
            await carry_out(folder)
    assert stack.started == []
