"""How far a run is, where it is known how many requests it has, and where only its time is known."""

from oku_core.results.tick import Tick
from oku_core.spec.spec import OPEN_END


def has_open_end(tick: Tick) -> bool:
    """Whether only a time ends the run, so that it is not known how many requests it will have."""
    return tick.sample.requests_total >= OPEN_END


def has_rate(tick: Tick) -> bool:
    """Whether the run has a rate, and so a plan, due times and three distributions."""
    return tick.sample.requests_planned is not None


def may_end_early(tick: Tick) -> bool:
    """Whether a time ends the run as well as a number of requests, whichever comes first."""
    return tick.length_s is not None and not has_rate(tick) and not has_open_end(tick)


def measure_progress(tick: Tick) -> tuple[int, int, int]:
    """How much of a run is accounted, has ended, and is all of it: in requests, or in milliseconds.

    In milliseconds where only a time ends the run, or it is nearer than the last request.
    """
    sample = tick.sample
    if tick.clock_s is not None and tick.length_s is not None:
        passed_ms, length_ms = round(tick.clock_s * 1000), round(tick.length_s * 1000)
        is_nearer = passed_ms * sample.requests_total > sample.done * length_ms
        if has_open_end(tick) or (may_end_early(tick) and is_nearer):
            return passed_ms, passed_ms, length_ms
    return sample.accounted, sample.done, sample.requests_total
