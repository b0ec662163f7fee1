"""Pushes the oldest lines of the outbox to Loki, and removes them after Loki has stored them."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from oku_coordinator.event_loop import BackgroundService
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.outbox_table import OutboxLine, OutboxSize
from oku_coordinator.loki.batch import Entry, Refusal
from oku_coordinator.loki.endpoint import LokiTarget
from oku_coordinator.loki.pusher import LokiPusher
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.process.clock import SteadyClock
from oku_core.process.supervision import Health
from oku_core.results.event import Event, EventType

_log = logging.getLogger(__name__)

BATCH_LINES, BATCH_BYTES = 1000, 512_000
POLL_S = 0.5
"""The pause between checks of an empty outbox."""
_EARLY = "it rejects lines as too new: the clock of this machine or of Loki is wrong"
EARLY_PAUSE_S = 1.0
LAST_LINES_S = 2.0
"""The time at the end in which Loki may still accept waiting lines."""
_DROP_TO = 0.9
"""An outbox over its limit is reduced to this share of the limit, so that the next time is not soon."""


class Publisher(BackgroundService):
    """Publishes lines while its task runs.

    Args:
        ledger: has the outbox.
        target: the address of Loki and the credentials.
        most_bytes: the limit of the outbox; beyond it, droppable lines are dropped, oldest first.
        metrics: count lines.
        clock: the clock for the times of lines.
    """

    service_name = "publisher"

    def __init__(
        self, ledger: Ledger, target: LokiTarget, most_bytes: int, metrics: Metrics, clock: SteadyClock
    ) -> None:
        self._ledger = ledger
        self._target = target
        self._most_bytes = most_bytes
        self._metrics = metrics
        self._clock = clock
        self.trouble = ""
        """Why Loki does not accept lines; empty if it does."""
        self._refused = self._dropped = 0

    async def end(self, grace_s: float = LAST_LINES_S) -> None:
        """Publish the waiting lines for at most `grace_s`, then stop."""
        deadline = time.monotonic() + grace_s
        while (  # noqa: ASYNC110  # the ledger is asked, it does not call
            self._measure().lines and not self.trouble and time.monotonic() < deadline
        ):
            await asyncio.sleep(0.05)
        await super().end()

    async def bound(self) -> None:
        """Drop lines beyond the limit of the outbox, a few at a time so that other tasks can run."""
        size = self._measure()
        self._metrics.show_outbox(size.lines, size.bytes)
        if size.bytes <= self._most_bytes:
            return
        now = self._clock.now()
        all_lines: Counter[str] = Counter()
        while dropped := self._drop():
            all_lines.update(dropped)
            await asyncio.sleep(0)
        for run, lines in all_lines.items():
            self._dropped += lines
            self._metrics.count_lines("dropped", lines)
            text = f"the outbox was full: {lines:,} lines of latencies, workers and coverage are lost"
            _log.warning("%s, of run %s", text, run, extra={"run": run})
            self._record_event(run, Event(at=now, type=EventType.LINES_DROPPED, text=text, requests=None))

    def describe(self) -> Mapping[str, Any]:
        """Waiting lines and bytes, the lines that this process dropped or Loki rejected, and the trouble."""
        size = self._measure()
        return {
            "lines": size.lines,
            "bytes": size.bytes,
            "dropped": self._dropped,
            "refused": self._refused,
            "trouble": self.trouble,
        }

    async def _work(self, health: Health) -> None:
        # Each start has a new pusher, which first queries the lines that Loki has already.
        async with LokiPusher(self._target, on_trouble=self._record_trouble) as pusher:
            while True:
                lines = await asyncio.to_thread(self._fetch_lines)
                if not lines:
                    health.record_success()
                    await asyncio.sleep(POLL_S)
                    continue
                entries = {_build_entry(line): line for line in lines}
                refusals = await pusher.push(list(entries))
                early = [entry for refusal in refusals if refusal.is_early for entry in refusal.entries]
                for entry in early:
                    del entries[entry]
                self._count(entries, [refusal for refusal in refusals if not refusal.is_early])
                await asyncio.to_thread(self._remove, list(entries.values()))
                if early:
                    self._record_trouble(_EARLY)
                    await asyncio.sleep(EARLY_PAUSE_S)
                elif self.trouble == _EARLY:
                    self._record_trouble("")
                health.record_success()

    def _measure(self) -> OutboxSize:
        with self._ledger.read() as t:
            return outbox_table.measure(t)

    def _remove(self, lines: Sequence[OutboxLine]) -> None:
        with self._ledger.change() as t:
            outbox_table.remove(t, lines)

    def _drop(self) -> dict[str, int]:
        with self._ledger.change() as t:
            return outbox_table.drop_oldest(t, int(_DROP_TO * self._most_bytes))

    def _fetch_lines(self) -> list[OutboxLine]:
        if not self._measure().lines:
            return []
        now, wall_ahead_s = self._clock.now(), self._clock.wall_ahead_s
        with self._ledger.change() as t:
            return outbox_table.fetch_batch(t, BATCH_LINES, BATCH_BYTES, now, wall_ahead_s)

    def _record_trouble(self, trouble: str) -> None:
        if trouble:
            _log.warning("Loki does not accept lines: %s", trouble)
        elif self.trouble:
            _log.info("Loki accepts lines again")
        self.trouble = trouble

    def _count(self, lines: Sized, refusals: Sequence[Refusal]) -> None:
        refused = sum(len(refusal.entries) for refusal in refusals)
        self._metrics.count_lines("accepted", len(lines) - refused)
        if not refused:
            return
        self._refused += refused
        self._metrics.count_lines("refused", refused)
        for refusal in refusals:
            text = f"Loki has refused {len(refusal.entries):,} lines: {refusal.status} {refusal.reason}"
            _log.error("%s", text)
            runs = {dict(entry.labels)["run"] for entry in refusal.entries}
            kinds = {dict(entry.labels)["kind"] for entry in refusal.entries}
            if kinds == {"event"}:
                continue  # an event about these could be refused as well, and so on
            for run in sorted(runs):
                now = self._clock.now()
                event = Event(at=now, type=EventType.LINES_REFUSED, text=text, reason=refusal.reason)
                self._record_event(run, event)

    def _record_event(self, run: str, event: Event) -> None:
        with self._ledger.change() as t:
            history.keep_events(t, run, [event])


def _build_entry(line: OutboxLine) -> Entry:
    labels = [("app", "oku"), ("kind", str(line.kind)), ("run", line.run)]
    if line.name:
        labels.append(("name", line.name))
    if line.is_late:
        labels.append(("late", "true"))
    return Entry(labels=tuple(labels), at_ns=line.at_ns, line=line.text)
