"""Sends entries to Loki until each is accepted or rejected for good, and decides when to retry."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from oku_coordinator.loki.batch import Batch, Entry, Refusal, cut_batches
from oku_coordinator.loki.calls import Acceptance, CallResult, LokiCalls
from oku_coordinator.loki.endpoint import LokiTarget

_log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
LONGEST_RETRY_AFTER_S = 120.0
SETTLE_S = 1.0
"""After Loki has answered again for this long, it has stored all that it had read of a failed request."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a push request.

    Attributes:
        bytes: the size of its body before compression; a larger line goes alone.
        lines: the number of lines.
        timeout_s: until it counts as failed.
    """

    bytes: int = 512_000
    lines: int = 1000
    timeout_s: float = 30.0


def log_trouble(trouble: str) -> None:
    """Log it."""
    if trouble:
        _log.warning("Loki does not accept lines: %s", trouble)
    else:
        _log.info("Loki accepts lines again")


class LokiPusher:
    """Pushes to one Loki, inside its `async with`, one call of `push` at a time.

    A line is stored exactly once. After a failure that may have left some lines stored, on the first push,
    and on the first one after a cancelled push, Loki is queried for its lines, and only the others are sent.
    Duplicates remain possible when
    - Loki cannot be queried (a gateway that only accepts lines), which is logged once;
    - the lines are older than about 2.6 hours: Loki shows such lines only half an hour after it has accepted
      them. In both cases they are sent again unchanged, and Loki usually detects that: it drops a line that
      is still in the block of about 256 kB that it is filling.

    Args:
        target: the address of Loki and the credentials.
        on_trouble: called with a sentence when lines are not accepted, again when the reason changes, and
            with an empty text when it is over.
        uniform: a random number between 0 and 1, for tests.
        is_in_doubt: whether an earlier process may have pushed some of the first entries.
    """

    def __init__(
        self,
        target: LokiTarget,
        *,
        on_trouble: Callable[[str], None] = log_trouble,
        limits: Limits = Limits(),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
        is_in_doubt: bool = True,
    ) -> None:
        self._calls = LokiCalls(target, limits.timeout_s)
        self._on_trouble = on_trouble
        self._limits = limits
        self._sleep = sleep
        self._uniform = uniform
        self._trouble = ""
        self._has_reported_blind = False
        self.is_in_doubt = is_in_doubt
        """Whether some lines of the next push may be stored already."""

    async def __aenter__(self) -> Self:
        """Open a session; connections are made when needed."""
        await self._calls.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self._calls.close()

    async def push(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Return when every entry was accepted or rejected for good; cancel it to give up.

        Status 400, 413, 422 and 260 (the tenant is blocked) are rejections. Everything else is retried
        without end: after growing pauses with full jitter, after long ones if Loki has not judged the lines
        (401, 403, 404 and the like), and after the seconds of a `Retry-After`.
        """
        is_in_doubt, self.is_in_doubt = self.is_in_doubt, True
        refusals = []
        for batch in cut_batches(entries, self._limits.bytes, self._limits.lines):
            refusal = await self._push(batch, is_in_doubt=is_in_doubt)
            if refusal is not None:
                refusals.append(refusal)
        self.is_in_doubt = False
        return refusals

    async def _push(self, batch: Batch, *, is_in_doubt: bool) -> Refusal | None:
        failures = 0
        refusal = None
        while True:
            if is_in_doubt:
                batch = await self._drop_stored(batch, has_failed=failures > 0)
                if not batch.entries:
                    break
            answer = await self._calls.push(batch)
            if answer.acceptance is Acceptance.REFUSED:
                refusal = await self._refuse(batch, answer)
            if answer.acceptance in {Acceptance.DONE, Acceptance.REFUSED}:
                break
            is_in_doubt = is_in_doubt or answer.acceptance is Acceptance.UNCLEAR
            await self._wait(answer, failures)
            failures += 1
        self._report_trouble("", "")
        return refusal

    async def _refuse(self, batch: Batch, answer: CallResult) -> Refusal | None:
        """The rejected part of a batch: on 400, Loki has stored the valid lines."""
        if answer.status == 400 and len(batch.entries) > 1:
            batch = await self._drop_stored(batch, has_failed=False)
        return Refusal(batch.entries, answer.status, answer.reason) if batch.entries else None

    async def _drop_stored(self, batch: Batch, *, has_failed: bool) -> Batch:
        """The part of a batch that Loki does not have, if it can be queried."""
        missing = await self._find_missing(batch)
        if missing.entries and has_failed:
            # Loki may still be busy with the failed request, or may have been during the query.
            await self._sleep(SETTLE_S)
            missing = await self._find_missing(missing)
        return missing

    async def _find_missing(self, batch: Batch) -> Batch:
        failures = 0
        while True:
            answer, stored = await self._calls.fetch_stored(batch)
            if answer.acceptance is Acceptance.DONE:
                return batch.drop(stored)
            if answer.acceptance in {Acceptance.DENIED, Acceptance.REFUSED} or answer.status == 501:
                if not self._has_reported_blind:
                    self._has_reported_blind = True
                    what = "it cannot be queried, so some lines may be stored twice"
                    self._report_trouble("blind", f"{what}: {_describe(answer)}")
                return batch
            await self._wait(answer, failures)
            failures += 1

    async def _wait(self, answer: CallResult, failures: int) -> None:
        self._report_trouble(answer.kind, _describe(answer))
        await self._sleep(choose_pause_s(answer, failures, self._uniform()))

    def _report_trouble(self, kind: str, trouble: str) -> None:
        if kind != self._trouble:
            self._trouble = kind
            self._on_trouble(trouble)


def choose_pause_s(answer: CallResult, failures: int, share: float) -> float:
    """The pause after a response.

    Args:
        answer: the response.
        failures: the number of failures in a row before it.
        share: of the longest pause at this point; random between 0 and 1, so that many clients do not return
            together.
    """
    is_denied = answer.acceptance is Acceptance.DENIED
    longest = LONGEST_PAUSE_S if is_denied else min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures, 10))
    return max(share * longest, min(answer.retry_after_s, LONGEST_RETRY_AFTER_S))


def _describe(answer: CallResult) -> str:
    return f"{answer.status} {answer.reason}".rstrip() if answer.status else answer.reason
