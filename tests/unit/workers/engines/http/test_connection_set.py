import asyncio

import pytest

from oku_workers.engines.http.connection_set import CONNECTING_AT_ONCE, ConnectionSet


class Making:
    """Connections are made, fail or are given up; what the engine hears of it."""

    def __init__(self) -> None:
        self.failed: list[tuple[str, str]] = []
        self.settled = 0
        self.set: ConnectionSet[str] = ConnectionSet(self)

    def on_connection_failed(self, connection: str, error: BaseException) -> None:
        """Note it."""
        assert connection in list(self.set)
        self.failed.append((connection, str(error)))

    def on_connection_settled(self) -> None:
        """Count it."""
        self.settled += 1


@pytest.fixture
def making() -> Making:
    """Without a connection."""
    return Making()


async def refuse() -> None:
    """A connection that nobody takes."""
    raise ConnectionRefusedError("no")


async def do_nothing_long() -> None:
    """A connection that is not made in time."""
    await asyncio.sleep(60)


async def settle() -> None:
    """Let tasks and their callbacks run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_that_is_made_stays_until_it_is_forgotten(making: Making) -> None:
    """The engine hears when another one may be made."""
    making.set.make("a", asyncio.sleep(0))
    assert (len(making.set), making.settled) == (1, 0)
    await settle()
    assert (list(making.set), making.settled, making.failed) == (["a"], 1, [])
    making.set.forget("a")
    assert not len(making.set)


async def test_one_that_cannot_be_made_has_ended(making: Making) -> None:
    """The engine hears why, while it is still there."""
    making.set.make("a", refuse())
    await settle()
    assert (list(making.set), making.settled, making.failed) == ([], 1, [("a", "no")])


async def test_one_that_is_given_up_has_ended_without_a_fault(making: Making) -> None:
    """Before its first step or later; one that is made is not touched."""
    making.set.make("a", do_nothing_long())
    making.set.give_up("a")
    making.set.make("b", do_nothing_long())
    making.set.make("c", asyncio.sleep(0))
    await settle()
    making.set.give_up("b")
    making.set.give_up("c")
    await settle()
    assert (list(making.set), making.settled, making.failed) == (["c"], 3, [])


async def test_only_so_many_are_made_at_a_time(making: Making) -> None:
    """There may be any number that are made."""
    for number in range(CONNECTING_AT_ONCE):
        assert making.set.can_make
        making.set.make(str(number), asyncio.sleep(0))
    assert not making.set.can_make
    await settle()
    assert making.set.can_make
    assert len(making.set) == CONNECTING_AT_ONCE


async def test_it_may_change_while_it_is_gone_through(making: Making) -> None:
    """As when the engine drops what it meets."""
    for name in "abc":
        making.set.make(name, asyncio.sleep(0))
    await settle()
    for name in making.set:
        making.set.forget(name)
    assert not len(making.set)


async def test_the_end_waits_for_all_of_them(making: Making) -> None:
    """Without any, there is nothing to wait for."""
    await asyncio.wait_for(making.set.wait_gone([]), 1.0)
    making.set.make("a", asyncio.sleep(0))
    await settle()
    waiting = asyncio.ensure_future(making.set.wait_gone([]))
    await settle()
    assert not waiting.done()
    making.set.forget("a")
    await asyncio.wait_for(waiting, 1.0)


async def test_the_end_waits_for_what_was_cancelled(making: Making) -> None:
    """A chore, and what was being made, may have something to put in order."""
    in_order = asyncio.Event()

    async def end_late() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await in_order.wait()

    for chores in ([asyncio.ensure_future(end_late())], []):
        in_order.clear()
        if not chores:
            making.set.make("a", end_late())
        await settle()
        for task in chores:
            task.cancel()
        making.set.give_up("a")
        waiting = asyncio.ensure_future(making.set.wait_gone(chores))
        await settle()
        assert not waiting.done()
        in_order.set()
        await asyncio.wait_for(waiting, 1.0)
    assert not len(making.set)
