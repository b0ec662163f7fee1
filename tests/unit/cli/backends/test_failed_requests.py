from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from oku_cli.backends.failed_requests import fetch_spec, open_failures
from oku_core.accounting.outcome import Outcome
from oku_core.accounting.run_state import RunState
from oku_core.results.failed_range import FailedRange, FailuresHead
from oku_core.spec.parser import build_mapping
from oku_core.spec.spec import Spec

SPEC = Spec(requests=7)
HEAD = FailuresHead(run="r1", state=RunState.COMPLETED, requests=3, unlisted=0, spec=build_mapping(SPEC))
RANGES = [
    FailedRange(start=0, stop=2, outcome=Outcome.TIMEOUT),
    FailedRange(start=4, stop=5, outcome=Outcome.LOST, target="buy"),
]


class Backend:
    """Gives a document, line by line."""

    async def read_failures(self, _: str) -> AsyncGenerator[bytes]:
        """Each line."""
        yield msgspec.json.encode(HEAD)[:-1] + b',"failures":['
        yield msgspec.json.encode(RANGES[0])
        yield b"," + msgspec.json.encode(RANGES[1])
        yield b"]}"


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
