import asyncio

import pytest

from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.engines.user_code.handouts import Handed, Handouts
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


def put(handouts: Handouts, execution: Execution, coordinate: int) -> int:
    """Hand one out."""
    return handouts.put(Handed(execution.tally, coordinate, 0))


async def test_slots_are_used_again(execution: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are free come first, so that few pages of shared memory are touched."""
    handouts = Handouts()
    assert [put(handouts, execution, coordinate) for coordinate in range(3)] == [0, 1, 2]
    popped = handouts.pop(1)
    assert popped is not None
    assert popped.coordinate == 1
    assert handouts.pop(1) is None
    assert put(handouts, execution, 3) == 1
    assert put(handouts, execution, 4) == 3
    assert len(handouts) == 4
    found = handouts.find(1)
    assert found is not None
    assert found.coordinate == 3
    assert handouts.find(9) is None
    # Each execution has its own. It is cut off alone.
    handouts, other = Handouts(), build()
    for coordinate in range(4):
        put(handouts, (execution, other)[coordinate % 2], coordinate)
    assert (handouts.list_slots(execution), handouts.list_slots(other)) == ([0, 2], [1, 3])
    assert [handed.coordinate for handed in handouts] == [0, 1, 2, 3]
    # All can be taken at once. When their host has died; the next one begins with the first slot.
    handouts = Handouts()
    for coordinate in range(3):
        put(handouts, execution, coordinate)
    handouts.pop(0)
    assert [(slot, handed.coordinate) for slot, handed in handouts.pop_all()] == [(1, 1), (2, 2)]
    assert (len(handouts), put(handouts, execution, 5)) == (0, 0)
    # There is room for as many as there are slots. Nobody handouts out more.
    monkeypatch.setattr("oku_workers.engines.user_code.handouts.MOST_SLOTS", 2)
    handouts = Handouts()
    assert handouts.has_room
    put(handouts, execution, 0)
    put(handouts, execution, 1)
    assert not handouts.has_room
    handouts.pop(0)
    assert handouts.has_room
