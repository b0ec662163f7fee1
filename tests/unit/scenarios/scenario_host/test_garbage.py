"""Garbage of user code is collected by what it holds."""

from collections.abc import Iterable

from oku.scenario_host.garbage import GarbageWatch, ProcessMemory


class GrowingMemory(ProcessMemory):
    """ProcessMemory of which a part is garbage."""

    def __init__(self) -> None:
        self.held_mb, self.garbage_mb, self.collections = 100.0, 0.0, 0

    def measure_mb(self) -> float:
        """Measure both parts."""
        return self.held_mb + self.garbage_mb

    def collect(self) -> None:
        """Collect the garbage."""
        self.garbage_mb, self.collections = 0.0, self.collections + 1


class MeasuredMemory(ProcessMemory):
    """ProcessMemory that has these sizes, one after the other."""

    def __init__(self, sizes_mb: Iterable[float]) -> None:
        self._sizes_mb = iter(sizes_mb)
        self.collections = 0

    def measure_mb(self) -> float:
        """Give the next size."""
        return next(self._sizes_mb)

    def collect(self) -> None:
        """Count it."""
        self.collections += 1


def test_garbage_is_collected_when_memory_grows() -> None:
    """Also again and again, but not for what stays."""
    memory = GrowingMemory()
    watch = GarbageWatch(memory)
    for _ in range(100):
        memory.garbage_mb += 20
        watch.poll()
        assert memory.garbage_mb < 100
    assert memory.collections == 20
    memory.held_mb = 1_000
    for _ in range(100):
        watch.poll()
    assert memory.collections == 21


def test_what_was_given_back_counts_when_memory_grows_again() -> None:
    """The least since the last time is what it has to do with."""
    memory = MeasuredMemory([1_000.0, 900.0, 100.0, 180.0, 200.0, 120.0, 190.0])
    watch = GarbageWatch(memory)
    for _ in range(5):
        watch.poll()
    assert memory.collections == 1
