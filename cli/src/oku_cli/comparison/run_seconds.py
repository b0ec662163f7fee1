"""Reads a run with its kept seconds, and builds the intervals around its quantiles."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import count_answered
from oku_core.accounting.run_state import REST_STATES
from oku_core.errors import UserError
from oku_core.json_reader import JsonDecoder, JsonError
from oku_core.results.sample import Sample
from oku_core.spec.load import WARM_UP
from oku_core.statistics.block_bootstrap import FEWEST_S
from oku_core.statistics.spread import Spread, build_intervals, measure_spread
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.summary import Summary

COMPARED_TIMES = (Time.LATENCY, Time.RESPONSE_TIME)
"""The times with intervals, and those by which runs are compared: how long users of the target wait."""


@dataclass(frozen=True, kw_only=True)
class RunSeconds:
    """A run and its seconds: its spec, under the names that users write, and its samples, oldest first."""

    summary: Summary
    spec: Mapping[str, Any]
    samples: Sequence[Sample]

    @property
    def distributions(self) -> dict[Time, LatencySummary]:
        """The quantiles of what its requests took; response times only with a rate."""
        both = {time: self.summary.find_latency(time) for time in COMPARED_TIMES}
        return {time: figures for time, figures in both.items() if figures.max is not None}

    def measure_spreads(self, *, seed: int = 0) -> dict[Time, Spread]:
        """The spread of each distribution; `TooLittleError` if the run is too short or was not seen."""
        requests = _count_measured(self.summary)
        return {time: measure_spread(self.samples, time, requests, seed=seed) for time in self.distributions}

    def build_intervals(self) -> Summary:
        """The summary of a run at rest with intervals, where there is enough for them."""
        if self.summary.state not in REST_STATES:
            return self.summary
        try:
            spreads = self.measure_spreads()
        except ValueError:
            return self.summary
        figures = self.distributions
        intervals = {
            f"{time}_interval_ms": build_intervals(spread, figures[time]) for time, spread in spreads.items()
        }
        return msgspec.structs.replace(self.summary, **intervals)


def _count_measured(summary: Summary) -> int:
    """How many answered requests are not of the warm-up."""
    answered = count_answered(msgspec.structs.astuple(summary.outcomes))
    return answered - sum(
        count_answered(msgspec.structs.astuple(phase.outcomes))
        for phase in summary.phases
        if phase.name == WARM_UP
    )


_decode = JsonDecoder[Sample](Sample).decode


class Histories(Protocol):
    """Where the histories of runs are."""

    def read_run_history(self, run: str) -> AsyncGenerator[bytes]:
        """The history of a run, line by line and without line ends."""


class _Head(msgspec.Struct):
    """The fields that a comparison reads from the first line of a history; the last line closes it."""

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
