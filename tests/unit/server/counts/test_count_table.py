from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.client import build_registry

from oku_server.counts.count_table import (
    EMPTY_TABLE,
    ROWS,
    CountTable,
    is_run,
    is_table,
    read_count,
    read_forgotten,
)
from oku_server.counts.run_registry import EMPTY_REGISTRY, KEPT_S, PLACES, RunRegistry

_runs = st.lists(st.one_of(st.sampled_from(["", "a", "b"]), st.text(max_size=45)), max_size=30)


@given(_runs, _runs)
def test_a_table_counts_every_request_of_every_run(before: list[str], after: list[str]) -> None:
    """A table has exactly what was added, even after another process takes over its block."""
    block = bytearray(EMPTY_TABLE)
    for added in (before, after):
        table = CountTable(block, build_registry())
        for run in added:
            table.add(run)
    wanted = Counter(run if is_run(run) else "" for run in before + after)
    assert {run: read_count(block, run) for run in wanted} == wanted
    assert is_table(bytes(block))


def test_a_run_that_was_never_counted_has_none() -> None:
    """An unknown run is not an error."""
    assert read_count(EMPTY_TABLE, "a") == read_count(EMPTY_TABLE, "") == 0
    # The longest name has a row of its own. A name of 40 characters is distinct from its first 39.
    block = bytearray(EMPTY_TABLE)
    table = CountTable(block, build_registry())
    for run in ("x" * 40, "x" * 39, "x" * 40):
        table.add(run)
    assert [read_count(block, "x" * length) for length in (40, 39, 0)] == [2, 1, 0]
    for run in ["x" * 41, "ü", "a\nb", "\0"]:
        # A name that fits no row is counted under no run: no request is lost.
        block = bytearray(EMPTY_TABLE)
        CountTable(block, build_registry()).add(run)
        assert read_count(block, "") == 1


def test_in_a_full_table_a_new_run_takes_the_place_of_the_oldest() -> None:
    """Only the oldest run is forgotten; if it comes again, it is new and starts at 0."""
    block = bytearray(EMPTY_TABLE)
    table = CountTable(block, build_registry())
    for number in range(ROWS):
        table.add(f"run-{number}")
    restarted = CountTable(block, build_registry())
    for run in ("", "run-0", "new", "new", "run-2", "run-0"):
        restarted.add(run)
    counted = {run: read_count(block, run) for run in ("", "new", "run-0", "run-1", "run-2", "run-3")}
    assert counted == {"": 1, "new": 2, "run-0": 1, "run-1": 0, "run-2": 2, "run-3": 1}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RunRegistry]:
    """A registry that can be written."""
    with (tmp_path / "lock").open("w") as lock:
        yield RunRegistry(bytearray(EMPTY_REGISTRY), lock.fileno())


def flood(table: CountTable, names: int = 3 * ROWS) -> None:
    """Count many requests, each of which names a made-up run."""
    for number in range(names):
        table.add(f"made-up-{number}")


def test_no_name_takes_the_place_of_an_announced_run(registry: RunRegistry) -> None:
    """The place is safe before the run's first request and in a process that takes over the block."""
    block = bytearray(EMPTY_TABLE)
    registry.announce("live", 1000.0)
    for _ in range(2):
        table = CountTable(block, registry)
        flood(table)
        table.add("live")
        flood(table)
        table.add("live")
    assert read_count(block, "live", registry.find("live")) == 4
    assert read_count(block, "made-up-0") == 0


def test_a_run_that_is_announced_after_its_first_requests_keeps_them(registry: RunRegistry) -> None:
    """Another process may have announced the run; its earlier requests are counted once."""
    block = bytearray(EMPTY_TABLE)
    table = CountTable(block, registry)
    for _ in range(5):
        table.add("live")
    registry.announce("live", 1000.0)
    assert read_count(block, "live", registry.find("live")) == 5
    table.add("live")
    flood(table)
    table.add("live")
    assert read_count(block, "live", registry.find("live")) == 7


def test_what_was_forgotten_is_told(registry: RunRegistry) -> None:
    """The number of forgotten names keeps anyone from taking a partial count for the whole."""
    block = bytearray(EMPTY_TABLE)
    table = CountTable(block, registry)
    flood(table, ROWS)
    assert read_forgotten(block) == 0
    table.add("new")
    assert read_forgotten(block) == 1


def test_a_run_that_gets_the_place_of_another_begins_at_0(registry: RunRegistry) -> None:
    """This holds even in a process that counted for the other run."""
    block = bytearray(EMPTY_TABLE)
    table = CountTable(block, registry)
    registry.announce("old", 1.0)
    table.add("old")
    for number in range(PLACES):
        registry.announce(f"run-{number}", KEPT_S + 2.0)
    assert registry.find("old") is None
    table.add(f"run-{PLACES - 1}")
    table.add("old")
    new = registry.find(f"run-{PLACES - 1}")
    assert new is not None
    assert new.place == 0
    assert read_count(block, f"run-{PLACES - 1}", new) == 1
    assert read_count(block, "old") == 1


@pytest.mark.parametrize("content", [b"", EMPTY_TABLE[:-1], EMPTY_TABLE + b"\0", bytes(len(EMPTY_TABLE))])
def test_anything_else_is_not_a_table(content: bytes) -> None:
    """A table is known by its length and its first bytes."""
    assert not is_table(content)
