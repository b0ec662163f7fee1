import asyncio
import os
import signal

import pytest

from oku_cli.process import interrupt
from oku_cli.process.interrupt import InterruptedAtOnceError, Interrupts, SignalAction


async def work(seconds: float) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return "done"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_what_can_be_cut_is_given_up_on_a_signal(number: signal.Signals) -> None:
    """The prepared message is raised."""
    interrupts = Interrupts()
    asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), number)

    with pytest.raises(InterruptedAtOnceError, match=r"^no run was begun$"):
        await interrupts.cut(work(60), "no run was begun")


async def test_what_cannot_be_taken_back_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is kept for the code that can pause what has begun meanwhile."""
    interrupts = Interrupts()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(0)
    assert await interrupts.let_end(work(0.05), "unknown") == "done"
    await asyncio.wait_for(interrupts.next_signal(), 1)
    # What does not end is left.
    monkeypatch.setattr(interrupt, "PATIENCE_S", 0.01)
    interrupts = Interrupts()
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(InterruptedAtOnceError, match=r"^unknown$"):
        await interrupts.let_end(work(60), "unknown")


async def test_each_signal_is_taken_once() -> None:
    """The next call waits for another signal."""
    interrupts = Interrupts()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait_for(interrupts.next_signal(), 1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(interrupts.next_signal(), 0.02)

    # Without a signal nothing changes. The work gives its result, and raises what it raises.
    async def fail() -> None:
        raise ValueError("x")

    interrupts = Interrupts()
    assert await interrupts.cut(work(0), "") == await interrupts.let_end(work(0), "") == "done"
    with pytest.raises(ValueError, match="x"):
        await interrupts.cut(fail(), "")


async def test_a_signal_says_what_it_does_to_the_run() -> None:
    """Ctrl-C and SIGHUP do the same; of several that nobody has taken yet, the first counts."""
    interrupts = Interrupts(SignalAction.DETACH)
    for number, action in (
        (signal.SIGTERM, SignalAction.DETACH),
        (signal.SIGINT, SignalAction.PAUSE),
        (signal.SIGHUP, SignalAction.PAUSE),
    ):
        os.kill(os.getpid(), number)
        assert await asyncio.wait_for(interrupts.next_signal(), 1) is action
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(0)
    assert await asyncio.wait_for(interrupts.next_signal(), 1) is SignalAction.DETACH
    # A command that only waits leaves the run alone. Whichever signal ends it.
    interrupts = Interrupts(SignalAction.DETACH, on_others=SignalAction.DETACH)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(os.getpid(), number)
        assert await asyncio.wait_for(interrupts.next_signal(), 1) is SignalAction.DETACH
