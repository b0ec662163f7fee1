"""A long run over time, thinned out: rate, requests in flight and memory of every process."""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median

import msgspec

from oku_benchmarks.measuring.observer import Observation
from oku_core.summary.tick import Tick

_POINTS = 400


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Points at equal distances; the first ends one step after the first request."""

    step_s: float
    rates_rps: list[float]
    """Counted at the servers."""
    in_flight: list[float | None]
    """Mean of the ticks; None where there is no tick."""
    memory_mb: dict[str, list[float | None]]
    """Resident memory of each process at the end of each step; None while it is not there."""


def build_series(samples: Sequence[Observation], ticks: Sequence[Tick], longest_step_s: float) -> Series:
    """From the first request until the last one has reached the servers.

    Args:
        samples: looks at the processes.
        ticks: of the run.
        longest_step_s: shorter runs have more points than they need, never steps shorter than this.
    """
    last = next(index for index, sample in enumerate(samples) if sample.sent == samples[-1].sent)
    started = [sample for sample in samples[: last + 1] if sample.sent > 0]
    begin, end = started[0].at, started[-1].at
    step_s = max(longest_step_s, (end - begin) / _POINTS)
    wall_s = time.time() - time.monotonic()
    looks = list(_cut(started, begin, step_s, int((end - begin) / step_s)))
    names = sorted({name for sample in started for name in sample.vitals})
    return Series(
        step_s=round(step_s, 3),
        rates_rps=[
            round((later.sent - look.sent) / (later.at - look.at), 1)
            for look, later in pairwise([started[0], *looks])
        ],
        in_flight=_average(ticks, begin + wall_s, step_s, len(looks)),
        memory_mb={
            name: [round(look.vitals[name].rss_mb, 1) if name in look.vitals else None for look in looks]
            for name in names
        },
    )


def measure_growth_mb(memory_mb: Sequence[float | None]) -> float | None:
    """Memory in the last tenth of a run beyond that after its first tenth; None when it was not there."""
    tenth = max(1, len(memory_mb) // 10)
    early = [size for size in memory_mb[tenth : 2 * tenth] if size is not None]
    late = [size for size in memory_mb[-tenth:] if size is not None]
    return round(median(late) - median(early), 1) if early and late else None


def _cut(samples: Sequence[Observation], begin: float, step_s: float, steps: int) -> Iterator[Observation]:
    """The first look at or after the end of each step."""
    looks = iter(samples)
    for step in range(1, steps + 1):
        yield next(look for look in looks if look.at >= begin + step * step_s)


def _average(ticks: Sequence[Tick], begin: float, step_s: float, steps: int) -> list[float | None]:
    sums: list[list[int]] = [[] for _ in range(steps)]
    for tick in ticks:
        step = int((tick.sample.at - begin) / step_s)
        if 0 <= step < steps and tick.sample.in_flight is not None:
            sums[step].append(round(tick.sample.in_flight))
    return [round(fmean(values), 1) if values else None for values in sums]
