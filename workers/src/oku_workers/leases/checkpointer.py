"""When a worker sends checkpoints: often early in a run, then at an interval, and at once when asked.

Their content is built elsewhere. One message is under way at a time: the next one waits until it is answered,
or a slow coordinator would receive ever more of them. A message without confirmation is followed by another
with the newest state, after growing pauses, so nothing is lost. A coordinator that is away for long, or that
is alive but confirms nothing, as with a full disk, receives few messages, or its queue would fill the broker.
When it is back, it receives one at once.
"""

import asyncio
import math
from collections.abc import Collection, Mapping
from typing import Protocol

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.process.supervision import Health


class CheckpointSink(Protocol):
    """Gives checkpoints to the broker."""

    async def send(self, batch: CheckpointBatch) -> None:
        """Return when the broker has them; an error that passes is raised."""


class CheckpointSource(Protocol):
    """Makes the messages of a `Checkpointer`."""

    def collect(self, *, is_repeat: bool) -> CheckpointBatch | None:
        """Build a message of all that is new, or of all that is not confirmed either; None without any."""

    def on_sent(self, batch: CheckpointBatch) -> None:
        """The broker has a message."""


DEFAULT_INTERVAL_S = 3.0
_SHORTEST_INTERVAL_S, _LONGEST_INTERVAL_S = 0.05, 600.0
COALESCE_S = 0.05
"""Changes within this time go into one message, and no two messages are closer."""
_EARLY_S = (0.5, 1.0, 2.0)
"""After the first request of a run, for the coordinator knows nothing of it yet."""
_MOST_EARLY_S = 6.0
"""With a longer interval there are too many workers for early checkpoints; heartbeats show their rate."""
_FIRST_REPEAT_S, _FIRST_REPEAT_SHARE = 1.0, 1 / 3
"""The first pause: this time, or this share of the interval, because very many workers take turns."""
_REPEAT_DELAYS = 2.0
"""An answer that takes this many times as long as the last one took is lost."""
_LONGEST_FIRST_REPEAT_S, _LONGEST_FIRST_REPEAT_INTERVALS = 10.0, 3.0
"""The longest first pause: the last answer may have been slow because the broker was away."""
_LONGEST_RETRY_S = 1.0
_MOST_UNANSWERED = 10
"""After this many repetitions in a row, the coordinator counts as away."""
_MOST_IGNORED = 100
"""After this many unanswered repetitions, a coordinator counts as away even if it is alive."""
_SILENCE_S = 20.0
"""A coordinator silent for longer was away: coordinators send something every few seconds."""
_LONGEST_PAUSE_S = 60.0
"""The longest pause between two messages to a coordinator that is away."""


class Checkpointer:
    """Sends checkpoints from `keep_sending` on; belongs to the event loop, whose clock it reads.

    Args:
        sink: gives a message to the broker.
        source: builds the messages.
        spread: from 0 to 1; which part of an interval passes before the first one, so that many workers do
            not speak at once.
    """

    def __init__(
        self,
        sink: CheckpointSink,
        source: CheckpointSource,
        spread: float = 0.0,
    ) -> None:
        self._sink = sink
        self._source = source
        self._spread = spread
        self._interval_s = DEFAULT_INTERVAL_S
        self._first_repeat_s = self._repeat_s = _FIRST_REPEAT_S
        self._unanswered = self._ignored = 0
        self._heard_at = -math.inf
        self._under_way: dict[str, int] | None = None
        """The number of each lease's checkpoint in a message that is not answered."""
        self._told_at = -math.inf
        """When the message that is under way was sent first."""
        self._sent_at = -math.inf
        self._requested_at = self._regular_at = self._repeat_at = math.inf
        self._early_at: list[float] = []
        self._woken: asyncio.Future[None] | None = None

    @property
    def interval_s(self) -> float:
        """The time from one regular checkpoint to the next."""
        return self._interval_s

    def set_interval(self, interval_s: float) -> None:
        """Set the interval between regular checkpoints."""
        self._interval_s = min(max(interval_s, _SHORTEST_INTERVAL_S), _LONGEST_INTERVAL_S)
        if self._regular_at < math.inf:
            self._regular_at = min(self._regular_at, _now() + self._interval_s)
        self._wake()

    def request(self, within_s: float = 0.0) -> None:
        """Send one soon: this much later at most."""
        self._requested_at = min(self._requested_at, _now() + within_s)
        self._wake()

    def begin_run(self) -> None:
        """The first index of a run was taken."""
        if self._interval_s <= _MOST_EARLY_S:
            self._early_at = [_now() + early_s for early_s in _EARLY_S]
        self._wake()

    def on_all_confirmed(self) -> None:
        """Nothing has to be repeated, and the next message may go."""
        if self._repeat_at < math.inf:
            took_s = _now() - self._told_at
            longest_s = max(_LONGEST_FIRST_REPEAT_S, _LONGEST_FIRST_REPEAT_INTERVALS * self._interval_s)
            self._first_repeat_s = min(max(_FIRST_REPEAT_S, _REPEAT_DELAYS * took_s), longest_s)
        self._repeat_at, self._repeat_s = math.inf, self._first_repeat_s
        self._under_way = None
        self._wake()

    def on_answer(self, confirmed: Mapping[str, int], ends: Collection[str]) -> None:
        """The coordinator has confirmed checkpoints, and named leases that should end.

        This answers the last message even if it does not confirm all of it, as for a lease that was taken
        back. The rest is repeated, and the next message may go.
        """
        self.on_heard(begins_anew=bool(confirmed or ends))
        told = self._under_way or {}
        if any(confirmed.get(lease, 0) >= number or lease in ends for lease, number in told.items()):
            self._under_way = None
            self._wake()

    def on_heard(self, *, begins_anew: bool = False) -> None:
        """A message of the coordinator has arrived; if all begins anew, forget those that it ignored."""
        if begins_anew or _now() - self._heard_at >= _SILENCE_S:
            self._ignored = 0
        self._heard_at = _now()
        if self._ignored >= _MOST_IGNORED:
            return
        was_away = self._is_away
        self._unanswered = 0
        if was_away:
            self._repeat_s = _FIRST_REPEAT_S
            self._repeat_at = min(self._repeat_at, _now())
            self._told_at = _now()
            self._wake()

    @property
    def _is_away(self) -> bool:
        return self._unanswered >= _MOST_UNANSWERED

    async def keep_sending(self, health: Health) -> None:
        """Send checkpoints when they are due, until cancelled."""
        self._regular_at = _now() + self._interval_s * self._spread
        while True:
            await self._wait_until_due()
            is_repeat = self._plan_next()
            batch = self._source.collect(is_repeat=is_repeat)
            if batch is None:
                # Unchanged leases may still have unconfirmed checkpoints.
                if is_repeat:
                    self.on_all_confirmed()
                continue
            self._plan_repeat(is_repeat=is_repeat)
            self._under_way = {checkpoint.lease: checkpoint.sequence for checkpoint in batch.checkpoints}
            try:
                await self._sink.send(batch)
            except Exception as error:  # noqa: BLE001  # it is logged, and shown until one is sent
                self._unanswered -= is_repeat  # the message was not sent
                self._ignored -= is_repeat
                self._repeat_at = _now() + min(health.record_failure(error), _LONGEST_RETRY_S)
                continue
            health.record_success()
            self._source.on_sent(batch)

    async def _wait_until_due(self) -> None:
        loop = asyncio.get_running_loop()
        while (pause_s := self._find_due() - loop.time()) > 0:
            self._woken = loop.create_future()
            timer = loop.call_later(pause_s, self._wake)
            try:
                await self._woken
            finally:
                timer.cancel()
                self._woken = None

    def _find_due(self) -> float:
        early_at = self._early_at[0] if self._early_at else math.inf
        due = self._repeat_at
        if self._under_way is None:
            due = min(due, self._requested_at, self._regular_at, early_at)
        return max(due, self._sent_at + (self._repeat_s if self._is_away else COALESCE_S))

    def _plan_next(self) -> bool:
        """Plan when to send the message after the one that is due; whether this one is a repeat."""
        self._sent_at = now = _now()
        self._requested_at = math.inf
        self._early_at = [at for at in self._early_at if at > now]
        if self._regular_at <= now:
            self._regular_at = max(self._regular_at + self._interval_s, now + _SHORTEST_INTERVAL_S)
        return self._repeat_at <= now

    def _plan_repeat(self, *, is_repeat: bool) -> None:
        """Plan when to repeat the message that is about to be sent."""
        shortest_s = self._interval_s * _FIRST_REPEAT_SHARE
        if is_repeat:
            self._unanswered += 1
            self._ignored += 1
            longest_s = _LONGEST_PAUSE_S if self._is_away else max(self._interval_s, self._first_repeat_s)
            self._repeat_s = max(shortest_s, min(2 * self._repeat_s, longest_s))
            self._repeat_at = self._sent_at + self._repeat_s
        else:
            self._told_at = self._sent_at
            self._repeat_s = max(shortest_s, self._repeat_s)
            self._repeat_at = min(self._repeat_at, self._sent_at + self._repeat_s)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


def _now() -> float:
    return asyncio.get_running_loop().time()
