from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
import pytest

from oku_cli.backends.failed_requests import fetch_spec, open_failures
from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.results.failed_range import FailedRange, FailuresHead
from oku_core.spec.parser import build_mapping
from oku_core.spec.spec import Spec

SPEC = Spec(requests=7)
HEAD = FailuresHead(run="r1", state=RunState.COMPLETED, requests=3, unlisted=0, spec=build_mapping(SPEC))
RANGES = [
    FailedRange(start=0, stop=2, outcome=Outcome.TIMEOUT),
    FailedRange(start=4, stop=5, outcome=Outcome.LOST, target="buy"),
]


LINES = (
    msgspec.json.encode(HEAD)[:-1] + b',"failures":[',
    msgspec.json.encode(RANGES[0]),
    b"," + msgspec.json.encode(RANGES[1]),
    b"]}",
)


class Backend:
    """Gives a document, line by line, or its beginning."""

    def __init__(self, lines: Sequence[bytes] = LINES) -> None:
        self._lines = lines

    async def read_failures(self, _: str) -> AsyncGenerator[bytes]:
        """Each line."""
        for line in self._lines:
            yield line


async def test_the_head_comes_first_and_then_the_ranges() -> None:
    """They are read as they come."""
    backend: Any = Backend()
    head, ranges = await open_failures(backend, "r1")
    assert head == HEAD
    assert [failed async for failed in ranges] == RANGES


async def test_the_spec_of_a_run_is_in_the_head() -> None:
    """No range is read for it."""
    backend: Any = Backend()
    assert await fetch_spec(backend, "r1") == SPEC


async def list_failed(backend: Any) -> list[FailedRange]:
    """All that a backend says of a run."""
    _, ranges = await open_failures(backend, "r1")
    return [failed async for failed in ranges]


@pytest.mark.parametrize("count", range(len(LINES)))
async def test_a_list_that_is_cut_off_is_not_taken_for_all(count: int) -> None:
    """Neither before its head nor in the middle of its ranges."""
    with pytest.raises(UserError, match="run r1: its failed requests cannot be read: the list is cut off"):
        await list_failed(Backend(LINES[:count]))
