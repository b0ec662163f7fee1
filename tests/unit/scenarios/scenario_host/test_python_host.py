"""The host of Python scenarios, with the test as its worker."""

import asyncio
import contextlib
import os
import select
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from oku.scenario_host.python_host import PythonHost, StuckError
from oku.scenario_host.scenario import Scenario
from oku_core.spec.spec import Engine, Spec, encode_spec
from oku_core.user_code.messages import (
    DROPPED,
    UNTOUCHED,
    Cut,
    FrameReader,
    FromHost,
    Hand,
    Ready,
    Report,
    SetUsers,
    Start,
    StopHost,
    ToHost,
    frame,
)
from oku_core.user_code.slots import Slots, create_slots

OK, TIMEOUT, EXCEPTION = 0, 2, 9
PATIENCE_S = 5.0


async def settle() -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(10):
        await asyncio.sleep(0)


class Worker:
    """Has one host in this event loop; belongs to it.

    Attributes:
        ended: the outcomes of the iterations that have ended, by their slots.
        wanted: how many iterations were asked for.
        reports: how many reports there were.
        is_ready: whether the host has said that it is.
    """

    def __init__(self, function: Callable[..., Any], users: int, stuck_s: float, **fields: Any) -> None:
        file = create_slots()
        self.slots = Slots(file)
        os.close(file)
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)  # noqa: FBT003  # its only argument
        spec = Spec(engine=Engine.PYTHON, **fields)
        start = Start(spec=encode_spec(spec), folder=os.fsencode(Path.cwd()), users=users, is_ahead=False)
        host = PythonHost(start, self.slots, Scenario(function, "a.py"), stuck_s=stuck_s)
        self.running = asyncio.ensure_future(host.run(theirs))
        self._reader = FrameReader(FromHost)
        self.ended: dict[int, int] = {}
        self.wanted = self.reports = 0
        self.is_ready = False

    def send(self, *messages: ToHost) -> None:
        """Say something."""
        self._ours.send(b"".join(map(frame, messages)))

    def hand(self, *slots: int) -> None:
        """Hand out iterations, whose indices are their slots."""
        self.send(Hand([each for slot in slots for each in (slot, slot, 0)]))

    def has_heard(self) -> bool:
        """Whether anything was said that was not read yet."""
        return bool(select.select([self._ours], [], [], 0)[0])

    async def wait(self, is_enough: Callable[[], bool]) -> None:
        """Read reports until something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_enough():
                data = await asyncio.get_running_loop().sock_recv(self._ours, 65_536)
                for message in self._reader.feed(data):
                    self._note(message)

    async def close(self) -> None:
        """Hang up; the host ends."""
        self._ours.close()
        if self.running.done():
            return
        async with asyncio.timeout(PATIENCE_S):
            await self.running
        self.slots.close()

    def _note(self, message: object) -> None:
        if isinstance(message, Report):
            self.reports += 1
            self.wanted += message.wanted
            for slot, outcome in zip(message.ended[::5], message.ended[1::5], strict=True):
                assert slot not in self.ended
                self.ended[slot] = outcome
        self.is_ready = self.is_ready or message == Ready()


Open = Callable[..., Worker]


@pytest.fixture
async def open_worker() -> AsyncIterator[Open]:
    """Has a worker with a host of a function; it ends by itself."""
    workers: list[Worker] = []

    def build(function: Callable[..., Any], users: int = 2, stuck_s: float = 60.0, **fields: Any) -> Worker:
        workers.append(Worker(function, users, stuck_s, **fields))
        return workers[-1]

    yield build
    for worker in workers:
        await worker.close()


async def test_a_host_asks_for_as_many_iterations_as_it_has_users(open_worker: Open) -> None:
    """And for another one for each that has ended."""

    async def scenario() -> None:
        await asyncio.sleep(0)

    worker = open_worker(scenario, users=3)
    await worker.wait(lambda: worker.wanted == 3)
    assert worker.is_ready
    worker.hand(0, 1, 2)
    await worker.wait(lambda: len(worker.ended) == 3 and worker.wanted == 6)
    assert worker.ended == {0: OK, 1: OK, 2: OK}
    assert all(worker.slots.begun_ns(slot) for slot in range(3))


async def test_an_iteration_that_ignores_its_limit_is_given_up(open_worker: Open) -> None:
    """It counts as one that took too long, once; another user goes on in the place of its own."""
    may_end = asyncio.Event()

    async def scenario(index: int) -> None:
        while index == 0 and not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await may_end.wait()

    worker = open_worker(scenario, users=1, stuck_s=0.1, iteration_timeout_s=0.05)
    worker.hand(0)
    await worker.wait(lambda: 0 in worker.ended)
    worker.hand(1, 2)
    await worker.wait(lambda: len(worker.ended) == 3)
    may_end.set()
    worker.hand(0)  # the slot may be given again; whoever ends late in it changes nothing
    del worker.ended[0]
    await worker.wait(lambda: len(worker.ended) == 3)
    assert worker.ended == {0: OK, 1: OK, 2: OK}


async def test_a_host_of_many_iterations_that_ignore_their_limit_ends(open_worker: Open) -> None:
    """All would go on at the same time; what became of them is told before."""
    may_end = asyncio.Event()

    async def scenario() -> None:
        while not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await may_end.wait()

    worker = open_worker(scenario, users=15, stuck_s=0.0, iteration_timeout_s=0.05)
    worker.hand(*range(30))
    await worker.wait(lambda: len(worker.ended) == 30)
    assert set(worker.ended.values()) == {TIMEOUT}
    with pytest.raises(StuckError, match="30 iterations go on"):
        await asyncio.wait_for(worker.running, PATIENCE_S)
    may_end.set()
    await settle()


async def test_an_iteration_that_is_late_is_a_timeout(open_worker: Open) -> None:
    """Whatever it makes of being cancelled."""

    async def scenario(index: int) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if index == 0:
                raise
            if index == 1:
                raise ValueError from None

    worker = open_worker(scenario, users=3, iteration_timeout_s=0.05)
    worker.hand(0, 1, 2)
    await worker.wait(lambda: len(worker.ended) == 3)
    assert worker.ended == {0: TIMEOUT, 1: TIMEOUT, 2: TIMEOUT}


async def test_an_iteration_that_blocks_beyond_its_limit_is_a_timeout(open_worker: Open) -> None:
    """Nobody could cancel it."""

    async def scenario(index: int) -> None:
        if index == 0:
            time.sleep(0.1)  # noqa: ASYNC251  # user code may do so

    worker = open_worker(scenario, users=1, iteration_timeout_s=0.05)
    worker.hand(0, 1)
    await worker.wait(lambda: len(worker.ended) == 2)
    assert worker.ended == {0: TIMEOUT, 1: OK}


async def test_users_that_block_in_turn_report_between_them(
    open_worker: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop, which would report for them, only gets to it after all of them."""
    now_ns, told = time.monotonic_ns(), []
    monkeypatch.setattr("oku.scenario_host.python_host.monotonic_ns", lambda: now_ns)

    async def scenario(index: int) -> None:
        nonlocal now_ns
        told.append(worker.has_heard())
        now_ns += 2_000_000_000

    worker = open_worker(scenario, users=3)
    await worker.wait(lambda: worker.wanted == 3)
    worker.hand(0, 1, 2)
    await worker.wait(lambda: len(worker.ended) == 3)
    assert told == [False, True, True]


async def test_a_host_whose_own_bookkeeping_fails_ends(
    open_worker: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no memory left; its worker gives back what it had, and nobody waits for it."""

    async def scenario() -> None:
        pass

    def fail(*_: object) -> None:
        raise MemoryError

    worker = open_worker(scenario, users=1)
    await worker.wait(lambda: worker.wanted == 1)
    monkeypatch.setattr("oku.host_session.Report", fail)
    with pytest.raises(MemoryError):
        await asyncio.wait_for(worker.running, PATIENCE_S)


async def test_what_is_cut_off_is_dropped(open_worker: Open) -> None:
    """Whether it waits, is under way, or ends all the same; its user goes on."""
    begun: list[int] = []

    async def scenario(index: int) -> None:
        begun.append(index)
        try:
            await asyncio.sleep(0 if index > 5 else 60)
        finally:
            if index == 1:
                raise ValueError

    worker = open_worker(scenario, users=2)
    worker.hand(0, 1, 2)
    await settle()
    assert begun == [0, 1]
    worker.send(Cut([0, 1, 2]))
    await worker.wait(lambda: len(worker.ended) == 3)
    assert worker.ended == {0: DROPPED, 1: DROPPED, 2: UNTOUCHED}
    worker.hand(6, 7)
    await worker.wait(lambda: len(worker.ended) == 5)
    assert (worker.ended[6], worker.ended[7]) == (OK, OK)


async def test_what_is_handed_out_and_cut_off_at_once_is_dropped(open_worker: Open) -> None:
    """Its user has not woken up for it."""
    begun: list[int] = []

    async def scenario(index: int) -> None:
        begun.append(index)

    worker = open_worker(scenario, users=1)
    await worker.wait(lambda: worker.wanted == 1)
    worker.send(Hand([0, 0, 0]), Cut([0]), Hand([1, 1, 0]))
    await worker.wait(lambda: len(worker.ended) == 2)
    assert worker.ended[1] == OK
    assert worker.ended[0] in (DROPPED, UNTOUCHED)
    assert begun == [1]


async def test_fewer_users_end_with_their_iterations(open_worker: Open) -> None:
    """Those that are idle end at once."""
    gate = asyncio.Event()
    at_once = most = 0

    async def scenario() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await gate.wait()
        await asyncio.sleep(0)
        at_once -= 1

    worker = open_worker(scenario, users=4)
    await worker.wait(lambda: worker.wanted == 4)
    worker.hand(0, 1, 2, 3)
    await settle()
    worker.send(SetUsers(1))
    gate.set()
    await worker.wait(lambda: len(worker.ended) == 4)
    assert most == 4
    most = 0
    worker.hand(4, 5, 6)
    await worker.wait(lambda: len(worker.ended) == 7)
    assert most == 1
    worker.send(SetUsers(3))
    worker.hand(7, 8, 9)
    await worker.wait(lambda: len(worker.ended) == 10)
    assert most == 3


async def test_a_user_whose_task_is_cancelled_is_replaced(open_worker: Open) -> None:
    """User code can reach it, also between two iterations."""
    tasks: list[asyncio.Task[Any]] = []

    async def scenario(index: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        if index == 1:
            task.cancel()
            await asyncio.sleep(1)

    worker = open_worker(scenario, users=1)
    worker.hand(0)
    await worker.wait(lambda: len(worker.ended) == 1)
    tasks[0].cancel()
    worker.hand(1)
    await worker.wait(lambda: len(worker.ended) == 2)
    worker.hand(2)
    await worker.wait(lambda: len(worker.ended) == 3)
    assert worker.ended == {0: OK, 1: EXCEPTION, 2: OK}
    assert tasks[0] is not tasks[1]


async def test_a_host_gives_signs_of_life(open_worker: Open) -> None:
    """Also if nothing happens."""

    async def scenario() -> None:
        pass

    worker = open_worker(scenario)
    await worker.wait(lambda: worker.wanted == 2)
    before = worker.reports
    await worker.wait(lambda: worker.reports >= before + 2)


@pytest.mark.parametrize("is_said", [True, False])
async def test_a_host_ends_when_it_is_told_to_or_its_worker_is_gone(
    open_worker: Open, *, is_said: bool
) -> None:
    """What is under way is cancelled; nothing of it goes on, nor does anybody wait for another one."""
    ended: list[int] = []

    async def scenario(index: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(index)

    worker = open_worker(scenario, users=3)
    worker.hand(0, 1)
    await worker.wait(lambda: worker.wanted > 0)
    await settle()
    if is_said:
        worker.send(StopHost())
    await worker.close()
    await settle()
    assert ended == [0, 1]
    assert asyncio.all_tasks() == {asyncio.current_task()}
