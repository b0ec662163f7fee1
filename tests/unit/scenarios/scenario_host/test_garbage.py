"""Garbage of user code is collected by what it holds."""

from oku.scenario_host.garbage import GarbageWatch


def test_garbage_is_collected_when_memory_grows() -> None:
    """Also again and again, but not for what stays."""
    held_mb, garbage_mb, collections = 100.0, 0.0, 0

    def collect() -> None:
        nonlocal garbage_mb, collections
        garbage_mb, collections = 0.0, collections + 1

    watch = GarbageWatch(lambda: held_mb + garbage_mb, collect)
    for _ in range(100):
        garbage_mb += 20
        watch.look()
        assert garbage_mb < 100
    assert collections == 20
    held_mb = 1_000
    for _ in range(100):
        watch.look()
    assert collections == 21


def test_what_was_given_back_counts_when_memory_grows_again() -> None:
    """The least since the last time is what it has to do with."""
    collections: list[None] = []
    sizes = iter([1_000.0, 900.0, 100.0, 180.0, 200.0, 120.0, 190.0])
    watch = GarbageWatch(lambda: next(sizes), lambda: collections.append(None))
    for _ in range(5):
        watch.look()
    assert len(collections) == 1
