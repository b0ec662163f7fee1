"""The pace at which specs are carried out: windows, phases and shares, which change while they are."""

import logging
from dataclasses import dataclass

from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.engine_protocol import EngineProtocol
from oku_workers.engines.contract.window import choose_window, describe_lowered_window, limit_window
from oku_workers.feed.feed_protocol import FeedProtocol
from oku_workers.feed.paced_feed import PacedFeed

_log = logging.getLogger(__name__)

_MOST_PACES = 4


@dataclass(frozen=True)
class RunPace:
    """What changes while a spec is carried out.

    Attributes:
        window: how many requests may be in flight here, as far as the system allows.
        phase: what requests are counted in, unless due times tell it.
        share: the place of this worker, and the number of workers, that share a highest rate.
    """

    window: int
    phase: str = ""
    share: tuple[int, int] | None = None


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
        """Set the pace of a spec, by default that of its own window."""
        pace = self._paces.get(spec) or RunPace(choose_window(spec))
        window = limit_window(pace.window, spec)
        self._warn_of_lowered_window(describe_lowered_window(window, pace.window, spec))
        # The window comes last: where it opens, an engine takes at once what the rest allows.
        feed.enter(pace.phase)
        if isinstance(feed, PacedFeed):
            feed.share(pace.share if window else None)
        if window != engine.window:
            engine.set_window(window)

    def _warn_of_lowered_window(self, reason: str) -> None:
        """Log the reason once, and show it to those who watch the run for as long as it holds."""
        if reason and not self._files_health.trouble:
            _log.warning("%s", reason)
        self._files_health.trouble = reason
