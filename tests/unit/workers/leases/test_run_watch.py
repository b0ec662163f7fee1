"""What a worker says of how well its window was filled, in each kind of run that asks for a window."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.kit.workers.scheduled_bench import BOOTED_NS, NS, FakeTiming

from oku_core.accounting.outcome import OK
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.quantity import Rate
from oku_workers.engines.contract.engine_protocol import HostLoad
from oku_workers.executions.execution import Execution
from oku_workers.executions.open_lease import OpenLease
from oku_workers.feed.feed import Feed
from oku_workers.feed.paced_feed import PacedFeed
from oku_workers.leases.run_watch import RunWatch

REQUESTS = 10**9
STEP_S, STEPS_PER_LOOK = 0.025, 2
AHEAD_S = 9.0
"""For so long limits last that nobody raises."""


@dataclass
class Target:
    """An engine whose target answers after a time, and whose users may rest before they want the next index.

    Args:
        feed: gives the indices.
        window: how many requests may be in flight, or how many users there are.
        latency_s: of the target.
        rest_s: of users, between two iterations.
        host_load: of user code.
    """

    feed: Feed | PacedFeed
    window: int
    latency_s: float
    rest_s: float = 0.0
    host_load: HostLoad | None = None
    sent: int = 0
    answers: deque[tuple[float, Any]] = field(default_factory=deque)
    resting: deque[float] = field(default_factory=deque)

    def work(self, now: float) -> None:
        """Count what is answered by now, and take what there is room for."""
        while self.answers and self.answers[0][0] <= now:
            self.answers.popleft()[1].answer(OK, 200, 1000, 1)
            self.resting.append(now + self.rest_s)
        while self.resting and self.resting[0] <= now:
            self.resting.popleft()
        free = self.window - len(self.answers) - len(self.resting)
        while free and self.feed.current is not None:
            self.answers.append((now + self.latency_s, self.feed.pop()[0]))
            self.sent, free = self.sent + 1, free - 1
        if self.host_load is not None:
            self.host_load.idle_users = free


@dataclass(frozen=True)
class Play:
    """A run of one worker.

    Args:
        window: how many requests may be in flight, or how many users there are.
        latency_s: of the target.
        max_rate: of all together, per second; 0 without.
        runs_user_code: whether users carry out iterations.
        rest_s: of users, between two iterations.
    """

    window: int
    latency_s: float
    max_rate: int = 0
    runs_user_code: bool = False
    rest_s: float = 0.0

    def run(self, length_s: float, away: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float, int]:
        """Play it while the coordinator is away in some seconds.

        Returns:
            The seconds watched, those of them that were underfilled, and how many requests were sent.
        """
        return asyncio.run(self._play(FakeTiming(), length_s, away))

    async def _play(
        self, time: FakeTiming, length_s: float, away: tuple[float, float]
    ) -> tuple[float, float, int]:
        spec = Spec(
            engine=Engine.PYTHON if self.runs_user_code else Engine.HTTPTOOLS,
            max_rate=Rate(f"{self.max_rate}/s") if self.max_rate else None,
        )
        feed: Feed | PacedFeed = PacedFeed(time.timing, Fraction(self.max_rate)) if self.max_rate else Feed()
        load = HostLoad() if self.runs_user_code else None
        engines = Target(feed, self.window, self.latency_s, self.rest_s, load)
        watch = RunWatch(engines)  # type: ignore[arg-type]
        lease = Lease(id="r1.000000001.a", run="r1", ranges=[(0, REQUESTS)], limit=self.window)
        execution = Execution(lease, spec, asyncio.get_running_loop().create_future())
        opened = OpenLease(execution)
        feed.add(execution)
        if isinstance(feed, PacedFeed):
            feed.share((0, 1))
        ahead = round(AHEAD_S * min(self.max_rate or REQUESTS, self.window / (self.latency_s + self.rest_s)))
        for step in range(round(length_s / STEP_S)):
            now = step * STEP_S
            time.turn(now)
            if not away[0] <= now < away[1]:
                feed.raise_limits({execution: execution.taken + ahead})
            engines.work(now)
            if step % STEPS_PER_LOOK == 0:
                feed.refresh()
                watch.sample((time.now_ns - BOOTED_NS) / NS, {execution: opened})
        return opened.watched_s, opened.underfilled_s, engines.sent


PLAYS = {
    "a highest rate": Play(50, 0.02, max_rate=100),
    "a highest rate and a slow target": Play(10, 1.0, max_rate=100),
    "a highest rate that is low": Play(5, 0.02, max_rate=2),
    "a highest rate and a window that just allows it": Play(10, 0.1, max_rate=100),
    "a scenario": Play(10, 0.2, runs_user_code=True),
    "long iterations": Play(10, 5.0, runs_user_code=True),
    "users that rest": Play(10, 0.05, runs_user_code=True, rest_s=2.0),
    "a scenario with a highest rate": Play(20, 0.2, max_rate=30, runs_user_code=True),
    "nothing but a window": Play(20, 0.1),
}
"""Runs that are well as long as there is something to take, however little of their window is in flight."""


def test_a_run_that_has_work_is_not_underfilled() -> None:
    """A highest rate, a slow target, or users that rest keep it from having more in flight."""
    wrong = {name: found for name, play in PLAYS.items() if (found := play.run(30.0))[1] > 0 or found[0] < 25}
    assert not wrong


def test_a_run_that_lacks_work_is_underfilled() -> None:
    """For as long as nobody raised its limits, beyond those that it had: 40 s without a coordinator."""
    wrong = {}
    for name, play in PLAYS.items():
        watched_s, underfilled_s, sent = play.run(60.0, away=(15.0, 55.0))
        lost_s = 60.0 - 60.0 * sent / play.run(60.0)[2]
        if watched_s < 55 or underfilled_s < 15 or abs(lost_s - underfilled_s) > 6.0:
            wrong[name] = (watched_s, underfilled_s, lost_s)
    assert not wrong


def test_a_run_is_not_underfilled_while_its_limits_last() -> None:
    """A coordinator may be away for a few seconds, and nobody notices."""
    wrong = {
        name: found for name, play in PLAYS.items() if (found := play.run(30.0, away=(15.0, 19.5)))[1] > 0
    }
    assert not wrong
