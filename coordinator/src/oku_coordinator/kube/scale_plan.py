"""The number of pods of a run: pure rules over its spec and the coordinator's limits.

Sizes change only at transitions: when a run gets its turn, and when no run has been active or pending for a
while. In between, they can be scaled by hand.
"""

import math

from oku_coordinator.settings import KubeSettings
from oku_core.errors import UserError
from oku_core.spec.spec import Spec


def check_bounds(spec: Spec, settings: KubeSettings) -> None:
    """Reject a spec that requests more pods than allowed, with a `UserError`."""
    if spec.workers is not None and spec.workers > settings.max_workers:
        raise UserError(
            f"workers: {spec.workers} is more than the {settings.max_workers} "
            "that this coordinator may scale to"
        )
    if spec.servers is None or not spec.brings_servers:
        return
    if not settings.servers:
        raise UserError("servers: this coordinator has no delay servers to scale")
    if spec.servers > settings.max_servers:
        raise UserError(
            f"servers: {spec.servers} is more than the {settings.max_servers} "
            "that this coordinator may scale to"
        )


def choose_workers(spec: Spec, settings: KubeSettings) -> int:
    """The number of worker pods at the start of a run; each has a request in flight, at least."""
    return min(spec.workers or settings.default_workers, settings.max_workers, spec.most_workers)


def choose_servers(spec: Spec, settings: KubeSettings, current: int) -> int:
    """The number of delay server pods at the start of a run: as requested, or as now; at least one."""
    if not spec.brings_servers:
        return current
    least = max(1, settings.min_servers)
    return max(least, min(spec.servers, settings.max_servers)) if spec.servers else max(least, current)


class IdleClock:
    """Reports once that no run has been active or pending for `idle_s`."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._since = math.inf
        self._is_done = False

    def record_run(self) -> None:
        """Record that there is a run."""
        self._since, self._is_done = math.inf, False

    def is_due(self, now: float) -> bool:
        """Whether it is time, without a run at `now` (monotonic), until `record_done` was called."""
        self._since = min(self._since, now)
        return not self._is_done and now - self._since >= self._idle_s

    def record_done(self) -> None:
        """Record that the action was done."""
        self._is_done = True
