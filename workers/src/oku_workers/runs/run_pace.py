"""The pace at which specs are carried out: windows, phases and shares, which change while they are.

A plan gives the load of a worker at each time of a closed run that is bounded by time. Its times are seconds
of the run's activity, unless they are called Unix times.
"""

import logging
import math
from dataclasses import dataclass
from functools import lru_cache

from oku_core.messaging.share import HeldShare, Place
from oku_core.process.supervision import Supervisor
from oku_core.schedule.stage import ConcurrencyPlan, share_of
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load import PhaseTime, has_ample_window, list_phase_times, list_stages
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import (
    ConnectionSharer,
    EngineProtocol,
    choose_window,
    describe_lowered_window,
    limit_window,
)
from oku_workers.feed.feed_protocol import FeedProtocol
from oku_workers.feed.paced_feed import PacedFeed

_log = logging.getLogger(__name__)

_MOST_SPECS = 4
_MOST_PACES = 4


def find_window(spec: Spec, share: HeldShare, total: int | None = None) -> int:
    """How many requests a worker may have in flight by its share.

    Args:
        spec: the spec.
        share: the worker's share of the run.
        total: how many all workers may have; the concurrency of the spec unless given.
    """
    whole = spec.concurrency if total is None else total
    window = min((spec.share_out(whole, *place) for place in share.places), default=0)
    return min(window, spec.requests)


def find_connections(spec: Spec, share: HeldShare) -> int | None:
    """How many connections to each host a worker may have; None without a limit."""
    if spec.connections is None:
        return None
    return min((share_of(spec.connections, *place) for place in share.places), default=0)


@dataclass(frozen=True)
class TimePlan:
    """The plan of one spec.

    Attributes:
        phases: its phases in their order.
        stages: what its stages ask for; None if its concurrency is always the same.
        end_s: when nothing more is taken; infinite if only the number of requests ends it.
    """

    spec: Spec
    phases: tuple[PhaseTime, ...]
    stages: ConcurrencyPlan | None
    end_s: float

    def find_phase(self, time_s: float) -> str:
        """The phase in which a request that is taken now counts."""
        found = [phase.name for phase in self.phases if phase.begin_s <= time_s]
        return found[-1] if found else self.phases[0].name

    def find_concurrency(self, time_s: float, share: HeldShare) -> int:
        """How many requests a worker may have in flight; none before the run begins, or without its share."""
        if not 0 <= time_s < self.end_s:
            return 0
        return find_window(self.spec, share, None if self.stages is None else self.stages.find_limit(time_s))

    def find_next_change(self, time_s: float) -> float:
        """When another phase begins, or the end comes; infinite if nothing more does."""
        changes = (0.0, *(float(phase.begin_s) for phase in self.phases), self.end_s)
        return min((change for change in changes if change > time_s), default=math.inf)


@dataclass(frozen=True)
class RunTime:
    """A plan with the period of activity in which it is carried out."""

    plan: TimePlan
    period: ActivePeriod

    def measure_s(self, unix_time: float) -> float:
        """The time of the run at a Unix time of the coordinator's clock; negative before its period."""
        if unix_time < self.period.starts_at:
            return -math.inf
        return self.period.schedule_s(unix_time)

    def find_next_change(self, unix_time: float) -> float:
        """The Unix time at which something else holds."""
        if unix_time < self.period.starts_at:
            return self.period.starts_at
        return self.period.unix_time(self.plan.find_next_change(self.measure_s(unix_time)))


@lru_cache(maxsize=_MOST_SPECS)
def build_time_plan(spec: Spec) -> TimePlan:
    """Build the plan of a closed run."""
    stages = list_stages(spec)
    length_s = spec.length_s
    return TimePlan(
        spec=spec,
        phases=list_phase_times(spec),
        stages=ConcurrencyPlan(stages) if stages else None,
        end_s=math.inf if length_s is None else float(length_s),
    )


@dataclass(frozen=True)
class RunPace:
    """The state that changes while a spec is carried out."""

    window: int
    """How many requests may be in flight here, as far as the system allows."""
    phase: str = ""
    """The phase that counts requests, unless due times decide it."""
    place: Place | None = None
    """Among the workers that share a highest rate."""
    connections: int | None = None
    """How many connections there may be to each host; None without a limit."""


class RunPaces:
    """Remembers the paces of the latest specs, and sets them."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._paces: dict[Spec, RunPace] = {}
        self._files_health = supervisor.enlist("open files")

    def keep(self, spec: Spec, pace: RunPace) -> bool:
        """Keep the pace of a spec; returns whether it has changed."""
        before = self._paces.pop(spec, None)
        self._paces[spec] = pace
        while len(self._paces) > _MOST_PACES:
            del self._paces[next(iter(self._paces))]
        return pace != before

    def find_window(self, spec: Spec) -> int:
        """How many requests may be in flight, as far as is known before there is an engine."""
        pace = self._paces.get(spec)
        return limit_window(choose_window(spec) if pace is None else max(pace.window, 1), spec)

    def apply(self, spec: Spec, engine: EngineProtocol, feed: FeedProtocol) -> None:
        """Set the pace of a spec; without one, nothing is sent."""
        pace = self._paces.get(spec) or RunPace(0)
        window = limit_window(pace.window, spec, pace.connections)
        wanted = window if has_ample_window(spec) else pace.window
        self._warn_of_lowered_window(describe_lowered_window(window, wanted, spec))
        # The window comes last: where it opens, an engine takes at once what the rest allows.
        feed.enter(pace.phase)
        if isinstance(feed, PacedFeed):
            feed.share(pace.place if window else None)
        if isinstance(engine, ConnectionSharer) and pace.connections is not None:
            engine.share_connections(pace.connections)
        if window != engine.window:
            engine.set_window(window)

    def _warn_of_lowered_window(self, reason: str) -> None:
        """Log the reason once, and show it to those who watch the run for as long as it holds."""
        if reason and not self._files_health.trouble:
            _log.warning("%s", reason)
        self._files_health.trouble = reason
