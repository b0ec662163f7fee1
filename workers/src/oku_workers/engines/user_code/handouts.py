"""The iterations that a host was handed and has not ended, by their slots."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from oku_core.user_code.slots import MOST_SLOTS
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally


@dataclass(slots=True)
class Handed:
    """One iteration that was handed out.

    Attributes:
        tally: counts it.
        coordinate: its place in the ledger.
        due_ns: when it was due, in nanoseconds of the monotonic clock; 0 without a due time.
        cancel_at: when its `Cut` was sent, by the clock of the event loop; else infinite.
    """

    tally: Tally
    coordinate: int
    due_ns: int
    cancel_at: float = float("inf")


class Handouts:
    """Gives each iteration a slot, and finds it there again."""

    def __init__(self) -> None:
        self._by_slot: dict[int, Handed] = {}
        self._free: list[int] = []
        self._used = 0

    def __len__(self) -> int:
        """How many were handed out and have not ended."""
        return len(self._by_slot)

    @property
    def has_room(self) -> bool:
        """Whether there is a slot left."""
        return bool(self._free) or self._used < MOST_SLOTS

    @property
    def slots(self) -> Collection[int]:
        """The slots of all of them."""
        return self._by_slot.keys()

    def put(self, handed: Handed) -> int:
        """Hand an iteration out; gives its slot."""
        if self._free:
            slot = self._free.pop()
        else:
            slot = self._used
            self._used += 1
        self._by_slot[slot] = handed
        return slot

    def find(self, slot: int) -> Handed | None:
        """The iteration in a slot; None if there is none."""
        return self._by_slot.get(slot)

    def pop(self, slot: int) -> Handed | None:
        """The same, which has ended now."""
        handed = self._by_slot.pop(slot, None)
        if handed is not None:
            self._free.append(slot)
        return handed

    def pop_all(self) -> list[tuple[int, Handed]]:
        """All of them with their slots; none is left."""
        all_handed = list(self._by_slot.items())
        self._by_slot, self._free, self._used = {}, [], 0
        return all_handed

    def list_slots(self, execution: Execution) -> list[int]:
        """The slots of the iterations of an execution."""
        return [slot for slot, handed in self._by_slot.items() if handed.tally.execution is execution]

    def __iter__(self) -> Iterator[Handed]:
        """All of them."""
        return iter(self._by_slot.values())
