"""Datagrams between a worker and the coordinator, by which the worker learns what time it is.

They are delayed, each way for its own time, and lost; no queue and no fault of the broker holds them up.
"""

import asyncio
import random
import time
from typing import TYPE_CHECKING

from tests.simulation.laws import LawBrokenError

from oku_workers.timing.coordinator_clock import DRIFT_PPM, ClockSample, CoordinatorClock

if TYPE_CHECKING:
    from tests.simulation.world import World

_FIRST_QUESTIONS, _FIRST_INTERVAL_S, _INTERVAL_S = 5, 0.05, 2.0
_LOST_SHARE = 0.05
_ASSUMED_SHARE = 0.999
_ROUNDING_S = 1e-5
"""What floating point does to Unix times."""


class ClockExchange:
    """The questions of one worker, and their answers.

    Args:
        world: has the coordinator.
        clock: what the worker knows.
        chance: draws delays and losses.
        drift: how many seconds pass on the worker's clock in one of the coordinator's. No bound holds for a
            clock that is worse than the worker believes.
    """

    def __init__(self, world: "World", clock: CoordinatorClock, chance: random.Random, drift: float) -> None:
        self._world = world
        self._clock = clock
        self._chance = chance
        self._has_bound = has_bound(drift)

    async def keep_asking(self) -> None:
        """Ask again and again, as the process of the worker."""
        asked = 0
        while True:
            if self._clock.must_ask:
                asked += 1
                await self._ask()
                if self._has_bound:
                    self._check()
            await asyncio.sleep(_FIRST_INTERVAL_S if asked < _FIRST_QUESTIONS else _INTERVAL_S)

    async def _ask(self) -> None:
        asked_ns = time.monotonic_ns()
        await asyncio.sleep(self._draw_delay_s())
        coordinator = self._world.coordinator
        is_lost = self._chance.random() < _LOST_SHARE
        process = coordinator.process
        if is_lost or coordinator.parts is None or not process.is_alive or process.is_frozen:
            return
        shown_ns = round(process.clock.monotonic() * 1e9)
        kernel = coordinator.parts.base.clock_store.kernel
        await asyncio.sleep(self._draw_delay_s())
        self._clock.add_sample(kernel, ClockSample(asked_ns, shown_ns, time.monotonic_ns()))

    def _draw_delay_s(self) -> float:
        return 10 ** self._chance.uniform(-4, -1.5)

    def _check(self) -> None:
        """What the worker knows is within its bound of what the coordinator's clock shows."""
        coordinator, notice = self._world.coordinator, self._clock.notice
        parts, bound_s = coordinator.parts, self._clock.bound_s
        if parts is None or notice is None or bound_s is None:
            return
        offset_ns = parts.base.clock.offset_ns
        if notice.offset_ns != offset_ns:
            return
        true_s = coordinator.process.clock.monotonic() + offset_ns / 1e9
        error_s = abs(self._clock.now() - true_s)
        if error_s > bound_s + _ROUNDING_S:
            self._world.break_law(
                LawBrokenError(f"a worker's clock is {error_s:.6f} s off, and its bound says {bound_s:.6f} s")
            )


def has_bound(drift: float) -> bool:
    """Whether a clock with this drift is as good as workers believe theirs to be."""
    return abs(drift - 1.0) < _ASSUMED_SHARE * DRIFT_PPM / 1e6
