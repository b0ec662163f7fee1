import logging
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_server.count_table import EMPTY_TABLE, RUNS, CountTable, is_run, is_table, read_count

_runs = st.lists(st.one_of(st.sampled_from(["", "a", "b"]), st.text(max_size=45)), max_size=30)


@given(_runs, _runs)
def test_a_table_counts_every_request_of_every_run(before: list[str], after: list[str]) -> None:
    """What a table says is what was added, also by a process that carries on with the block of another."""
    block = bytearray(EMPTY_TABLE)
    for added in (before, after):
        table = CountTable(block)
        for run in added:
            table.add(run)
    wanted = Counter(run if is_run(run) else "" for run in before + after)
    assert {run: read_count(block, run) for run in wanted} == wanted
    assert is_table(bytes(block))


def test_a_run_that_was_never_counted_has_none() -> None:
    """Unknown runs are no error."""
    assert read_count(EMPTY_TABLE, "a") == read_count(EMPTY_TABLE, "") == 0


@pytest.mark.parametrize("run", ["x" * 41, "ü", "a\nb", "\0"])
def test_a_name_that_fits_no_row_is_counted_under_no_run(run: str) -> None:
    """No request is lost, and no such name can take a row."""
    block = bytearray(EMPTY_TABLE)
    CountTable(block).add(run)
    assert read_count(block, "") == 1


def test_the_longest_name_has_a_row_of_its_own() -> None:
    """40 characters are kept apart from their first 39."""
    block = bytearray(EMPTY_TABLE)
    table = CountTable(block)
    for run in ("x" * 40, "x" * 39, "x" * 40):
        table.add(run)
    assert [read_count(block, "x" * length) for length in (40, 39, 0)] == [2, 1, 0]


def test_in_a_full_table_a_new_run_takes_the_place_of_the_oldest() -> None:
    """Only the run that came first is forgotten; if it comes again, it is new and starts at 0."""
    block = bytearray(EMPTY_TABLE)
    table = CountTable(block)
    for number in range(RUNS):
        table.add(f"run-{number}")
    restarted = CountTable(block)
    for run in ("", "run-0", "new", "new", "run-2", "run-0"):
        restarted.add(run)
    counted = {run: read_count(block, run) for run in ("", "new", "run-0", "run-1", "run-2", "run-3")}
    assert counted == {"": 1, "new": 2, "run-0": 1, "run-1": 0, "run-2": 2, "run-3": 1}


def test_a_full_table_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """One line tells that the oldest runs are forgotten, not one for each of them."""
    table = CountTable(bytearray(EMPTY_TABLE))
    with caplog.at_level(logging.WARNING):
        for number in range(RUNS):
            table.add(f"run-{number}")
        assert not caplog.records
        for number in range(10):
            table.add(f"new-{number}")
    assert [record.getMessage() for record in caplog.records] == [
        "1023 runs are counted, each new one takes the place of the oldest"
    ]


@pytest.mark.parametrize("content", [b"", EMPTY_TABLE[:-1], EMPTY_TABLE + b"\0", bytes(len(EMPTY_TABLE))])
def test_anything_else_is_no_table(content: bytes) -> None:
    """A table is known by its length and its first bytes."""
    assert not is_table(content)
