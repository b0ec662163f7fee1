"""What a backend says of the failed requests of a run, and of its spec, which it says with them."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from oku_cli.backends.run_backend import RunBackend
from oku_core.errors import UserError
from oku_core.json_reader import JsonDecoder
from oku_core.results.failed_range import FailedRange, FailuresHead
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec

_decode_head = JsonDecoder[FailuresHead](FailuresHead).decode
_decode_range = JsonDecoder[FailedRange](FailedRange).decode


async def open_failures(backend: RunBackend, run: str) -> tuple[FailuresHead, AsyncIterator[FailedRange]]:
    """What is said once of the failed requests of a run, and their ranges, as they come.

    A list that is cut off is a `UserError`, here or when its ranges are read.
    """
    lines = backend.read_failures(run)
    head = _read_head(run, await anext(lines, b""))
    return head, _read_ranges(run, lines)


async def fetch_spec(backend: RunBackend, run: str) -> Spec:
    """The spec of a run."""
    async with aclosing(backend.read_failures(run)) as lines:
        return parse_spec(Source("spec", _read_head(run, await anext(lines, b"")).spec))


def _read_head(run: str, line: bytes) -> FailuresHead:
    if not line:
        raise _build_cut_off(run)
    return _decode_head(line.rpartition(b',"failures":[')[0] + b"}")


async def _read_ranges(run: str, lines: AsyncIterator[bytes]) -> AsyncIterator[FailedRange]:
    async for line in lines:
        if line.startswith(b"]"):
            return
        yield _decode_range(line.removeprefix(b","))
    raise _build_cut_off(run)


def _build_cut_off(run: str) -> UserError:
    return UserError(f"run {run}: its failed requests cannot be read: the list is cut off")
