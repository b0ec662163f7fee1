"""The loads that seeds play: a number of requests, a rate, a length of time, or a highest rate."""

import random
from collections.abc import Callable
from enum import StrEnum

from msgspec.structs import replace

from oku_core.schedule.stage import Arrivals
from oku_core.spec.load import complete_load
from oku_core.spec.spec import Spec
from oku_core.spec.values.load_values import Late, StageText
from oku_core.spec.values.quantity import Rate

_GIVEN_SHARE = 0.3
"""Of the runs with a rate whose spec says how many requests a worker may have in flight."""
_FLOOD_SHARE = 0.15
"""Of the runs with a rate, those whose rate is far above what all workers can send."""
_MOST_REQUESTS = 2000
"""About so many at most are sent in a run that ends at a time."""


class Load(StrEnum):
    """What a run is to send; the words stand after `--loads`."""

    NUMBER = "number"
    RATE = "rate"
    TIME = "time"
    PACED = "paced"


_WEIGHTS = {Load.NUMBER: 5, Load.RATE: 4, Load.TIME: 3, Load.PACED: 1}


def draw_spec(source: str, closed: Spec, slot_rps: float, loads: frozenset[Load] | None) -> Spec:
    """Draw a load, and give a spec with it.

    Args:
        source: what chance depends on.
        closed: has a number of requests.
        slot_rps: how many requests all workers send in a second, if each has one in flight.
        loads: those to choose from; all unless given.
    """
    chance = random.Random(f"load {source}")
    kinds = [load for load in Load if loads is None or load in loads]
    load = chance.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]
    return _DRAW[load](chance, closed, slot_rps)


def _draw_number(_chance: random.Random, closed: Spec, _slot_rps: float) -> Spec:
    return closed


def _draw_rate(chance: random.Random, closed: Spec, _slot_rps: float) -> Spec:
    """A few stages with a rate, ramps among them, or one rate for a while."""
    peak = 10 ** chance.uniform(0.5, 2)
    spec = replace(
        closed,
        range_size=None,
        arrivals=chance.choice(tuple(Arrivals)),
        seed=chance.randrange(2**32),
        late=Late(chance.choice(("1s", "100ms", "5s", "send"))),
    )
    if chance.random() < 0.3:
        spec = replace(spec, rate=Rate(f"{peak:.2f}/s"), duration_s=float(chance.randint(3, 30)))
    else:
        stages = [
            f"{chance.randint(2, 12)}s:{chance.choice((0.0, 0.5, 1.0)) * peak:.2f}.."
            f"{chance.choice((0.0, 1.0, 1.0)) * peak:.2f}/s"
            for _ in range(chance.randint(1, 3))
        ]
        spec = replace(spec, stages=(*map(StageText, stages), StageText(f"2s:{peak:.2f}..{peak:.2f}/s")))
    spec = _warm_up(chance, spec)
    given = {"concurrency"} if chance.random() < _GIVEN_SHARE else set()
    if spec.late.duration_s is not None and chance.random() < _FLOOD_SHARE:
        rate = Rate(f"{10 ** chance.uniform(2.5, 3.3):.0f}/s")
        spec = replace(spec, stages=(), warm_up_s=None, rate=rate, duration_s=float(chance.randint(2, 4)))
    return complete_load(spec, given)


def _draw_time(chance: random.Random, closed: Spec, slot_rps: float) -> Spec:
    """A length of time, or stages with so many requests in flight; which may end after a number, too."""
    given = {"concurrency"}
    length_s = chance.randint(3, 25)
    most = max(1, int(_MOST_REQUESTS / (length_s * slot_rps)))
    spec = replace(closed, range_size=None, concurrency=min(closed.concurrency, most))
    if chance.random() < 0.4:
        peak = min(chance.choice((3, 10, 30)), most * 3)
        levels = [chance.choice((0, peak // 2, peak)) for _ in range(chance.randint(1, 3))]
        stages = [f"{max(1, length_s // 2)}s:{begin}..{peak}" for begin in levels]
        spec, given = replace(spec, stages=tuple(map(StageText, stages))), set()
    else:
        spec = replace(spec, duration_s=float(length_s))
    if chance.random() < 0.3:
        spec = _draw_pace(chance, spec, slot_rps)
    if chance.random() < 0.3:
        given.add("requests")  # as many as there are in the closed run
    return complete_load(_warm_up(chance, spec), given)


def _draw_paced(chance: random.Random, closed: Spec, slot_rps: float) -> Spec:
    """A number of requests, and a highest rate."""
    spec = _draw_pace(chance, replace(closed, range_size=None), slot_rps)
    assert spec.max_rate is not None
    return replace(spec, requests=min(spec.requests, max(20, int(spec.max_rate.per_second * 40))))


def _draw_pace(chance: random.Random, spec: Spec, slot_rps: float) -> Spec:
    pace = min(100.0, chance.uniform(0.2, 1.5) * slot_rps * spec.concurrency)
    return replace(spec, max_rate=Rate(f"{max(1.0, pace):.1f}/s"))


def _warm_up(chance: random.Random, spec: Spec) -> Spec:
    length_s = spec.length_s
    if length_s is None or chance.random() >= 0.25:
        return spec
    return replace(spec, warm_up_s=float(max(1, int(length_s) // 3)))


_DRAW: dict[Load, Callable[[random.Random, Spec, float], Spec]] = {
    Load.NUMBER: _draw_number, Load.RATE: _draw_rate, Load.TIME: _draw_time, Load.PACED: _draw_paced,
}  # fmt: skip
