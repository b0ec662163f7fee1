"""What is compiled of a worker, beside what has a module of tests of its own."""

import os
import socket
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.workers.extension import require_extension

from oku_core.accounting.histogram import BUCKETS, HIGHEST_US, SUB_BUCKET_BITS
from oku_workers.executions.distribution import Counts, record_in_python, record_times
from oku_workers.speedups.extension import write

times = st.integers(0, 100) | st.integers(0, 2 * HIGHEST_US)


@pytest.fixture(autouse=True, scope="module")
def extension() -> None:
    """It must be there."""
    require_extension()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection that do not block."""
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(0)
        other.settimeout(0)
        yield one, other


@given(st.lists(times), st.lists(times))
def test_times_have_the_same_buckets(first: list[int], second: list[int]) -> None:
    """In a list and in a dictionary, and added to what is there."""
    dense, sparse = [[0] * BUCKETS for _ in range(2)], [defaultdict[int, int](int) for _ in range(2)]
    pairs: list[Sequence[Counts]] = [dense, sparse]
    for some in (first, second):
        told = [
            record(counts, some, HIGHEST_US, SUB_BUCKET_BITS)
            for pair in pairs
            for record, counts in zip((record_times, record_in_python), pair, strict=True)
        ]
        assert told[0] == told[1] == told[2] == told[3]
    assert dense[0] == dense[1]
    assert sparse[0] == sparse[1] == {place: count for place, count in enumerate(dense[0]) if count}


def test_a_socket_takes_what_it_can(pair: tuple[socket.socket, socket.socket]) -> None:
    """As many bytes as `write` says, and an error once it takes none, as of `os.write`."""
    one, other = pair
    content, sent = os.urandom(1 << 20), 0
    with suppress(BlockingIOError):
        while sent < len(content):
            sent += write(one.fileno(), content[sent : sent + 65_536])
    assert 0 < sent < len(content)
    received = b""
    while len(received) < sent:
        received += other.recv(1 << 20)
    assert received == content[:sent]


def test_a_socket_that_was_hung_up_takes_nothing(pair: tuple[socket.socket, socket.socket]) -> None:
    """It raises, and no signal ends the process."""
    one, other = pair
    other.close()
    with pytest.raises(BrokenPipeError):
        write(one.fileno(), b"x")
    with pytest.raises(OSError, match="Bad file descriptor"):
        write(-1, b"x")


def test_what_cannot_be_recorded_is_refused() -> None:
    """In the way of Python."""
    cases: list[tuple[object, ...]] = [
        (),
        ([0], (1,), 9, 11),
        ([0], [1], "9", 11),
        ([0], ["1"], 9, 11),
        ([0], [1 << 70], 9, 11),
        ([0], [-1], 9, 11),
        ([0], [5], 9, 11),
        ([None], [0], 9, 11),
        (None, [0], 9, 11),
        ([0], [0], 9, 0),
        ([0], [0], 9, 64),
    ]
    for arguments in cases:
        with pytest.raises((TypeError, ValueError, OverflowError, IndexError)):
            record_times(*arguments)  # type: ignore[arg-type]
    other_cases: list[tuple[object, ...]] = [
        (),
        (1,),
        (1, b"x", 2),
        ("1", b"x"),
        (1, "x"),
        (1 << 32, b"x"),
        (1 << 70, b"x"),
    ]
    for arguments in other_cases:
        # What cannot be written is refused. In the way of Python.
        with pytest.raises((TypeError, OverflowError)):
            write(*arguments)  # type: ignore[arg-type]
