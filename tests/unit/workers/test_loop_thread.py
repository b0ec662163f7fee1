import asyncio
import threading
from collections.abc import Iterator

import pytest

from oku_workers.loop_thread import LoopThread


@pytest.fixture
def loop_thread() -> Iterator[LoopThread]:
    """A running event loop."""
    loop_thread = LoopThread()
    loop_thread.start()
    yield loop_thread
    loop_thread.end()


def test_errors_come_back(loop_thread: LoopThread) -> None:
    """They are raised where the call was made."""

    def fail() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        loop_thread.ask(fail)

    # Calls and coroutines run in the thread of the loop. Their results come back to whoever asked.
    async def work() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    assert loop_thread.await_result(work()) == "requests"
    assert loop_thread.ask(lambda: threading.current_thread().name) == "requests"


def test_a_busy_loop_is_not_waited_for_and_does_not_answer_late(loop_thread: LoopThread) -> None:
    """What nobody waits for any more is not done: a late look at the last second would lose it."""
    free, is_busy, calls = threading.Event(), threading.Event(), []

    def hold() -> None:
        is_busy.set()
        free.wait(5)

    holder = threading.Thread(target=loop_thread.ask, args=[hold])
    holder.start()
    is_busy.wait(5)
    with pytest.raises(TimeoutError):
        loop_thread.ask(lambda: calls.append("late"), 0.01)
    free.set()
    holder.join()

    loop_thread.ask(lambda: calls.append("next"))

    assert calls == ["next"]
