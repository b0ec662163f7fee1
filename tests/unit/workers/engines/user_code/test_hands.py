import asyncio

import pytest

from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.engines.user_code.hands import Handed, Hands
from oku_workers.executions.execution import Execution


@pytest.fixture
async def execution() -> Execution:
    """One that has begun."""
    return build()


def build() -> Execution:
    """One of a lease of ten, in the running event loop."""
    lease = Lease(id="lease", run="run", ranges=[(0, 10)], limit=10)
    execution = Execution(lease, Spec(urls=(Url("http://h/"),)), asyncio.get_running_loop().create_future())
    execution.begin_segment()
    return execution


def put(hands: Hands, execution: Execution, coordinate: int) -> int:
    """Hand one out."""
    return hands.put(Handed(execution.tally, coordinate, 0))


async def test_slots_are_used_again(execution: Execution) -> None:
    """Those that are free come first, so that few pages of shared memory are touched."""
    hands = Hands()
    assert [put(hands, execution, coordinate) for coordinate in range(3)] == [0, 1, 2]
    popped = hands.pop(1)
    assert popped is not None
    assert popped.coordinate == 1
    assert hands.pop(1) is None
    assert put(hands, execution, 3) == 1
    assert put(hands, execution, 4) == 3
    assert len(hands) == 4
    found = hands.find(1)
    assert found is not None
    assert found.coordinate == 3
    assert hands.find(9) is None


async def test_each_execution_has_its_own(execution: Execution) -> None:
    """It is cut off alone."""
    hands, other = Hands(), build()
    for coordinate in range(4):
        put(hands, (execution, other)[coordinate % 2], coordinate)
    assert (hands.list_slots(execution), hands.list_slots(other)) == ([0, 2], [1, 3])
    assert [handed.coordinate for handed in hands] == [0, 1, 2, 3]


async def test_all_can_be_taken_at_once(execution: Execution) -> None:
    """When their host has died; the next one begins with the first slot."""
    hands = Hands()
    for coordinate in range(3):
        put(hands, execution, coordinate)
    hands.pop(0)
    assert [(slot, handed.coordinate) for slot, handed in hands.take_all()] == [(1, 1), (2, 2)]
    assert (len(hands), put(hands, execution, 5)) == (0, 0)


async def test_there_is_room_for_as_many_as_there_are_slots(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody hands out more."""
    monkeypatch.setattr("oku_workers.engines.user_code.hands.MOST_SLOTS", 2)
    hands = Hands()
    assert hands.has_room
    put(hands, execution, 0)
    put(hands, execution, 1)
    assert not hands.has_room
    hands.pop(0)
    assert hands.has_room
