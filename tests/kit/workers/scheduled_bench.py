"""The feed of an open run with a clock that the test turns, and an engine that takes when it is told to."""

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oku_core.accounting.index_ranges import Range
from oku_core.messaging.lease import Lease
from oku_core.messaging.order import ClockNotice
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import ActivePeriod, Wave, plan_wave
from oku_core.spec.load import build_schedule
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import Rate
from oku_core.spec.values.url import Url
from oku_workers.executions.scheduled_execution import ScheduledExecution
from oku_workers.feed.scheduled_feed import ScheduledFeed
from oku_workers.timing.coordinator_clock import CoordinatorClock
from oku_workers.timing.timing import Timing

if TYPE_CHECKING:
    from oku_workers.feed.feed_protocol import Taken

NS = 1_000_000_000
STARTS_AT = 1_800_000_000.0
"""When the period of each run starts, in Unix time of the coordinator's clock."""
BOOTED_NS = 1000 * NS
"""What the monotonic clock shows then."""
_KERNEL = "k1"
_MOST_WAKES = 1_000_000


def build_open_spec(rate: str, duration_s: float, **changes: Any) -> Spec:
    """A spec with a rate."""
    requests = int(Rate(rate).per_second * int(duration_s))
    fields: dict[str, Any] = {"urls": (Url("http://127.0.0.1/{i}"),), "rate": Rate(rate), "seed": 7}
    return Spec(**(fields | {"duration_s": duration_s, "requests": requests} | changes))


def list_waves(schedule: Schedule, lanes: int = 1) -> list[Wave]:
    """All waves of a schedule, each with so many lanes."""
    waves: list[Wave] = []
    while wave := plan_wave(schedule, waves[-1].next_block if waves else 0, lanes):
        waves.append(wave)
    return waves


class FakeTimer:
    """A timer whose time a test turns."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.at_ns: int | None = None
        self._callback = callback

    def arm(self, at_ns: int) -> None:
        """Call back at this time."""
        self.at_ns = at_ns

    def disarm(self) -> None:
        """Do not call back."""
        self.at_ns = None

    def close(self) -> None:
        """Never call back again."""
        self.disarm()

    def fire(self) -> None:
        """It is time."""
        self.at_ns = None
        self._callback()


class FakeTiming:
    """The clocks and timers of a worker, all of which a test turns.

    Args:
        is_known: whether the coordinator's clock is known from the start.

    Attributes:
        now_ns: what the monotonic clock shows.
        tick_ns: how long it takes to read it.
    """

    def __init__(self, *, is_known: bool = True) -> None:
        self.now_ns = BOOTED_NS
        self.tick_ns = 0
        self.timers: list[FakeTimer] = []
        self.clock = CoordinatorClock(_KERNEL, lambda: self.now_ns)
        if is_known:
            self.tell()
        self.timing = Timing(
            coordinator_clock=self.clock, monotonic_ns=self._read, build_timer=self._build_timer
        )

    def _read(self) -> int:
        self.now_ns += self.tick_ns
        return self.now_ns

    def tell(self) -> None:
        """The coordinator says what its clock is."""
        self.clock.set_notice(ClockNotice(kernel=_KERNEL, offset_ns=round(STARTS_AT * NS) - BOOTED_NS))

    def _build_timer(self, _: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> FakeTimer:
        self.timers.append(FakeTimer(callback))
        return self.timers[-1]

    def turn(self, until_s: float) -> None:
        """Let time go by until so many seconds after the start, and wake who wants to be woken."""
        until_ns = BOOTED_NS + round(until_s * NS)
        wakes = 0
        while due := [timer for timer in self.timers if timer.at_ns is not None and timer.at_ns <= until_ns]:
            timer = min(due, key=lambda timer: timer.at_ns or 0)
            self.now_ns = max(self.now_ns, timer.at_ns or 0)
            timer.fire()
            wakes += 1
            assert wakes < _MOST_WAKES, "a timer wakes again and again, and time stands still"
        self.now_ns = until_ns

    def stall(self, until_s: float) -> None:
        """Let time go by without the event loop, which wakes then."""
        self.now_ns = BOOTED_NS + round(until_s * NS)
        self.turn(until_s)


class ScheduledBench:
    """The feed of an open run, with an engine that takes all that it shows as far as its window allows.

    Args:
        spec: with a rate.
        window: how many requests may be in flight.
        is_known: whether the coordinator's clock is known from the start.

    Attributes:
        taken: what was taken, with the second of the run in which it was.
        flights: what is in flight of it.
        requests: how often higher limits were asked for.
    """

    def __init__(self, spec: Spec, window: int = 10**9, *, is_known: bool = True) -> None:
        self.spec = spec
        self.schedule = build_schedule(spec)
        self.window = window
        self.time = FakeTiming(is_known=is_known)
        self.requests = 0
        self.feed = ScheduledFeed(self.time.timing, spec.late.duration_s, self)
        self.feed.attach(self)
        self.taken: list[tuple[float, Taken]] = []
        self.flights: list[Taken] = []
        self.executions: list[ScheduledExecution] = []

    def add(
        self, wave: Wave, lane: int = 0, *ranges: Range, limit: int = 10**9, offset_s: float = 0.0
    ) -> ScheduledExecution:
        """A lease comes, of a whole lane unless ranges are given."""
        lease = Lease(
            id=f"r1.{len(self.executions):09d}.x",
            run="r1",
            ranges=list(ranges) or [wave.lane_range(lane)],
            limit=limit,
            wave=wave,
            lane=lane,
        )
        period = ActivePeriod(STARTS_AT, offset_s)
        finished = asyncio.get_running_loop().create_future()
        execution = ScheduledExecution(lease, self.spec, finished, lambda: 0.0, self.schedule, period)
        self.executions.append(execution)
        self.feed.add(execution)
        return execution

    def has_room(self) -> bool:
        """Whether the window is not full."""
        return len(self.flights) < self.window

    def take_due(self) -> bool:
        """Take it at once."""
        self.fill()
        return True

    def request_limits(self) -> None:
        """Count it."""
        self.requests += 1

    def find_reserve(self) -> float:
        """It is not known."""
        return math.inf

    def fill(self) -> None:
        """Take what there is to take."""
        while len(self.flights) < self.window and self.feed.current is not None:
            taken = self.feed.pop()
            self.flights.append(taken)
            self.taken.append(((self.time.now_ns - BOOTED_NS) / NS, taken))

    def answer(self, count: int = 10**9) -> None:
        """Answer the oldest requests in flight, and take what waits."""
        answered, self.flights = self.flights[:count], self.flights[count:]
        for tally, _, _, due_ns in answered:
            tally.answer(0, 200, 1500, 10, (self.time.now_ns - due_ns) // 1000)
        self.fill()
        self.time.turn((self.time.now_ns - BOOTED_NS) / NS)

    @property
    def indices(self) -> list[int]:
        """What was taken, in its order."""
        return [taken[2] for _, taken in self.taken]
