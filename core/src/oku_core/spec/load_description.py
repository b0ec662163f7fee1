"""The load of a spec in words, and whether the requests in flight that it allows can hold its rate."""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import msgspec

from oku_core.schedule.arrivals import Arrivals
from oku_core.schedule.stage import Stage
from oku_core.spec.load import list_stages
from oku_core.spec.spec import OPEN_END, Spec
from oku_core.spec.values.quantity import find_exact_seconds, format_duration

MOST_TOLD = 4
"""How many stages are told one by one."""

_PERIODS = ((1, "/s"), (60, "/min"), (3600, "/h"))
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def describe_load(spec: Spec) -> str:
    """The load in words: `5,000/s for 10 min, 3,000,000 requests`, `200 in flight per worker for 10 min`.

    Of user code: `200 users, 1,000,000 iterations`.
    """
    return ", ".join(_list_parts(spec))


def describe_shortage(spec: Spec, workers: int, latency_s: float) -> str:
    """Why the requests in flight that a spec allows can't hold its rate, and what can; empty if they can.

    By Little's law (J. D. C. Little: A Proof for the Queuing Formula L = λW, Operations Research 9, 1961), a
    rate times the mean latency is the mean number in flight.

    Args:
        spec: a spec with a rate.
        workers: how many workers send.
        latency_s: how long a request is in flight, in the mean.
    """
    window, peak = spec.find_window(workers), max(stage.peak for stage in list_stages(spec))
    needed = peak * find_exact_seconds(latency_s)
    if needed <= window * workers:
        return ""
    held = Fraction(window * workers) / find_exact_seconds(latency_s)
    what, needs = "in flight", f"--concurrency {math.ceil(needed / workers)}"
    if spec.runs_user_code:
        what, needs = "users", f"--users {math.ceil(needed)}"
    return (
        f"{workers:,} worker{'s' * (workers != 1)} with {window:,} {what}{' each' * (workers != 1)} "
        f"can sustain at most {_format_rates(Fraction(math.floor(held)))} at a latency of "
        f"{format_duration(latency_s)}; "
        f"{_format_rates(peak)} needs {needs}"
    )


def _list_parts(spec: Spec) -> Iterator[str]:
    stages = list_stages(msgspec.structs.replace(spec, warm_up_s=None))
    counted = spec.counted if spec.requests != 1 else spec.counted.removesuffix("s")
    requests = f"{spec.requests:,} {counted}"
    if len(stages) > MOST_TOLD:
        yield f"{len(stages)} stages of up to {_format_levels(spec, max(stage.peak for stage in stages))}"
        yield _format_time(sum((stage.duration for stage in stages), Fraction(0)))
    else:
        yield from (_describe_stage(spec, stage) for stage in stages)
    if spec.is_open:
        yield requests
    elif spec.is_timed:
        if not stages and spec.length_s is not None:
            yield f"{_describe_concurrency(spec)} for {_format_time(spec.length_s)}"
        if spec.requests < OPEN_END:
            yield f"at most {requests}"
    else:
        yield _describe_concurrency(spec)
        yield requests
    if spec.max_rate is not None:
        yield f"at most {_format_rates(spec.max_rate.per_second)}"
    if spec.is_open and spec.arrivals is Arrivals.POISSON:
        yield "Poisson arrivals"
    if spec.warm_up_s is not None:
        yield f"including a warm-up of {_format_time(find_exact_seconds(spec.warm_up_s))}"


def _describe_concurrency(spec: Spec) -> str:
    many = "in flight"
    if spec.runs_user_code:
        many = f"user{'s' * (spec.concurrency != 1)}"
    return f"{spec.concurrency:,} {many}{'' if spec.shares_concurrency else ' per worker'}"


def _describe_stage(spec: Spec, stage: Stage) -> str:
    time = _format_time(stage.duration)
    if stage.begin == stage.end:
        return f"{_format_levels(spec, stage.end)} for {time}"
    return f"{_format_levels(spec, stage.begin, stage.end)} over {time}"


def _format_levels(spec: Spec, *levels: Fraction) -> str:
    """Write rates, or requests in flight, with one unit: `0 to 5,000/s`, `0 to 200 in flight`."""
    unit = "users" if spec.runs_user_code else "in flight"
    return _format_rates(*levels) if spec.is_open else f"{_join(levels)} {unit}"


def _format_rates(*per_second: Fraction) -> str:
    """Write rates for the shortest time in which all are whole: `5,000/s`, `90/min`, `20/h`."""
    for seconds, unit in _PERIODS:
        counts = [rate * seconds for rate in per_second]
        if all(count.denominator == 1 for count in counts):
            return f"{_join(counts)}{unit}"
    return f"{' to '.join(f'{float(rate):,.4g}' for rate in per_second)}/s"


def _join(counts: Iterable[Fraction]) -> str:
    return " to ".join(f"{int(count):,}" for count in counts)


def _format_time(seconds: Fraction) -> str:
    """Write a time in full: `10 min`, `1 h 30 min`, `1.5 s`, `20 ms`."""
    if seconds < 1:
        return f"{float(seconds * 1000):g} ms"
    if seconds.denominator != 1:
        return f"{float(seconds):g} s"
    left, parts = int(seconds), []
    for length, unit in _UNITS:
        count, left = divmod(left, length)
        parts += [f"{count} {unit}"] if count else []
    return " ".join(parts)
