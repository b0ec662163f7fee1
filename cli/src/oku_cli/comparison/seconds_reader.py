"""Reads a run with its seconds from its history, and no more of that: leases may be millions."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from oku_cli.comparison.run_seconds import RunSeconds
from oku_core.accounting.run_state import REST_STATES
from oku_core.errors import UserError
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.results.sample import Sample
from oku_core.results.summary import Summary
from oku_core.statistics.block_bootstrap import FEWEST_S

_decode = JsonDecoder[Sample](Sample).decode


class Histories(Protocol):
    """Where the histories of runs are."""

    def read_run_history(self, run: str) -> AsyncGenerator[bytes]:
        """The history of a run, line by line and without line ends."""


class _Head(msgspec.Struct):
    """What is needed of the first line of a history; its object is closed only by the last line."""

    summary: Summary
    spec: Mapping[str, Any]


_HEAD: JsonDecoder[_Head] = JsonDecoder(_Head)


async def read_run_seconds(histories: Histories, run: str) -> RunSeconds:
    """Read a run and its seconds; `UserError` if its history cannot be read."""
    samples: list[Sample] = []
    try:
        async with aclosing(histories.read_run_history(run)) as lines:
            head = _HEAD.decode(await anext(lines) + b"}")
            await anext(lines)  # the list of samples begins
            async for line in lines:
                if line == b"]":
                    break
                samples.append(_decode(line.removeprefix(b",")))
    except JsonError as error:
        raise UserError(f"run {run}: its history cannot be read: {error}") from error
    except StopAsyncIteration:
        raise UserError(f"run {run}: its history cannot be read: it is cut off") from None
    return RunSeconds(summary=head.summary, spec=head.spec, samples=samples)


async def add_intervals(histories: Histories, summary: Summary) -> Summary:
    """Add the intervals to the summary of a run, if it is at rest and long enough to have any."""
    if summary.state not in REST_STATES or summary.active_s < FEWEST_S:
        return summary
    seconds = await read_run_seconds(histories, summary.run)
    return RunSeconds(summary=summary, spec=seconds.spec, samples=seconds.samples).build_intervals()
