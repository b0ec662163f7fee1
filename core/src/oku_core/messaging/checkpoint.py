"""The checkpoint of a lease: its results since its start, and its requests still in flight.

A checkpoint is a state rather than a difference. The newest one counts, so a lost, doubled or late one
changes nothing; a worker repeats its newest one until the coordinator has confirmed its sequence number.
`checkpoint_faults` checks a checkpoint by itself; the ledger checks whether it contains its
predecessor, and decides whether it counts.
"""

from collections import Counter
from itertools import chain

import msgspec

from oku_core.accounting.counts import Counts
from oku_core.accounting.index_ranges import Range, iter_ranges, merge_ranges
from oku_core.accounting.outcome import OTHER, Outcome
from oku_core.messaging.hook import HookReport
from oku_core.messaging.printed import Printed
from oku_core.messaging.reason_runs import NOT_KEPT, count_places, split_ranges

LONGEST_REFUSAL = 1_000
"""The longest reason of a refusal, in characters."""
LONGEST_NAME = 200
"""The longest phase or name of a part, in characters."""
MOST_FAILED_RANGES = 4096
"""How many ranges of failed positions a lease lists; further ones are only counted."""
MOST_REASON_RANGES = 16_384
"""How many ranges of failed positions a lease keeps by their reasons; further ones are only listed."""
MOST_INNER_PARTS = 2_000
"""How many names of inner requests a lease reports, in all phases."""
OTHER_NAMES = "(other names)"
"""The common name of inner requests beyond the limit of distinct names."""
MOST_TRACEBACKS, LONGEST_TRACEBACK = 16, 4_000
"""How many tracebacks a lease reports, and the longest, in characters."""


class Part(Counts, frozen=True, kw_only=True):
    """Results of the requests of one phase and one name, since the start of the lease.

    Attributes:
        phase: the phase of the run; empty if the run has only one.
        name: the name of the requests; empty if all have the same.
        per_second: the outcomes by the Unix second, on the worker's clock, in which the requests ended. Each
            entry is what the second has in all; seconds that have not changed since a checkpoint that was
            confirmed may be left out. All entries ever sent together sum to `outcomes`.
        sent_per_second: how many requests were sent in each Unix second on the coordinator's clock, of those
            that have ended and those in flight, by the same rule as `per_second`.
        failed: the positions of requests that are not ok, packed (`oku_core.accounting.index_ranges`), by
            outcome; those beyond `MOST_FAILED_RANGES` are missing.
        failed_reasons: the reasons of these positions, by outcome: runs (`oku_core.messaging.reason_runs`)
            whose places are in `reasons`. Beyond `MOST_REASON_RANGES`, reasons are not kept.
    """

    phase: str = ""
    name: str = ""
    per_second: dict[int, list[int]] = msgspec.field(default_factory=dict)
    sent_per_second: dict[int, int] = msgspec.field(default_factory=dict)
    failed: dict[Outcome, list[int]] = msgspec.field(default_factory=dict)
    failed_reasons: dict[Outcome, list[int]] = msgspec.field(default_factory=dict)

    def count_kept_reasons(self) -> Counter[tuple[int, str]]:
        """How many of the positions have each reason, by the keys of `reasons`; those that are kept."""
        counts = Counter[tuple[int, str]]()
        for runs in self.failed_reasons.values():
            for place, count in count_places(runs).items():
                if place != NOT_KEPT:
                    counts[self.reasons[place - 1].key] += count
        return counts

    def split_failed(self, outcome: Outcome) -> dict[str, list[Range]]:
        """The positions with an outcome by their reasons, `OTHER` for those that are not kept."""
        places = split_ranges(iter_ranges(self.failed[outcome]), self.failed_reasons.get(outcome, ()))
        texts = (OTHER, *(count.reason for count in self.reasons))
        return {texts[place]: ranges for place, ranges in places.items()}


class LeaseFigures(msgspec.Struct, frozen=True, array_like=True):
    """Measurements of a worker during a lease.

    Attributes:
        started_at: the Unix time of the first request; 0 if none was sent.
        ended_at: the Unix time of the last answer so far.
        cpu_s: the processor time of the worker for this lease.
        peak_rss_mb: the peak resident memory of the worker so far.
        max_lag_s: the largest lag of the worker's event loop during the lease; never negative.
        busy_share: the largest share, from 0 to 1, of any whole second of the lease that the worker spent
            on a processor or waiting for one; 0 if no whole second was measured.
        saturated: the number of covered requests that ended in seconds in which the worker was short of
            processor time.
        lagged: the number of covered requests that ended in seconds in which the event loop lagged.
        clock_step_s: the largest step by which the clock of the worker's machine was set during the lease.
        watched_s: the seconds in which the lease was the one to take from and the target answered.
        underfilled_s: the part of these seconds in which less than 97 % of the window was in flight although
            indices were untaken; where a highest rate or users hold it back, only for lack of work.
    """

    started_at: float = 0.0
    ended_at: float = 0.0
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0
    max_lag_s: float = 0.0
    busy_share: float = 0.0
    saturated: int = 0
    lagged: int = 0
    clock_step_s: float = 0.0
    watched_s: float = 0.0
    underfilled_s: float = 0.0


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one lease. It covers the positions `[0, done)` except for those in flight.

    Attributes:
        lease: the id of the lease.
        sequence: rises with each checkpoint of the lease, from 1.
        done: the first position that was not taken.
        end: the first position that will not be taken; below the length of the lease once it was shortened.
        in_flight: the positions below `done` that have no outcome, in ascending order; at most as many as the
            concurrency.
        untouched: positions of `in_flight` that were given back and certainly never sent; they are not
            counted as perhaps sent again. In ascending order; a position in it stays in it.
        is_final: whether the worker has finished with the lease: it takes no further position, and the
            positions in `in_flight` were given back.
        parts: results of the covered positions; parts that have not changed since a checkpoint that was
            confirmed may be left out.
        figures: measured meanwhile.
        inner: results of the inner requests, which user code made within iterations, by phase and name.
            Beside the account: they sum to nothing, and `failed` is empty; their reasons have the positions
            of the iterations.
        tracebacks: where exceptions of user code came from, by their reason: the first of each.
        refusal: the reason, in one line, why the worker could not begin, such as a missing file or engine;
            empty if it could. A refusal is final and covers no requests.
    """

    lease: str
    sequence: int
    done: int
    end: int
    in_flight: list[int] = []
    untouched: list[int] = []
    is_final: bool = False
    parts: list[Part] = []
    figures: LeaseFigures = LeaseFigures()
    inner: list[Part] = []
    tracebacks: dict[str, str] = {}
    refusal: str = ""

    @property
    def covered(self) -> int:
        """The number of requests that the checkpoint accounts for."""
        return self.done - len(self.in_flight)

    def list_unsent(self) -> list[Range]:
        """The positions that were taken and certainly not sent, as far as it names them; ranges that rise."""
        untouched = ((position, position + 1) for position in self.untouched)
        skipped = (iter_ranges(part.failed.get(Outcome.NOT_SENT, [])) for part in self.parts)
        return list(merge_ranges(sorted((*untouched, *chain.from_iterable(skipped)))))


class CheckpointBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoints of one process of one worker, taken at one instant.

    Attributes:
        worker: the name of the worker.
        incarnation: the id of the worker's process; a restarted worker has the same name and another
            incarnation.
        run: the run of `taken` and `rate_rps`.
        taken: how many indices this process has taken of the run so far.
        rate_rps: the requests of the run that end in a second, as measured of late; 0 while it is unknown.
        told_to: the Unix time up to which the seconds of this process are complete, by its machine's clock or
            by the coordinator's as it knows it, whichever is behind; 0 if unknown.
        checkpoints: of all open leases that have something new, and final ones that are not yet confirmed, in
            the order in which the worker works on the leases.
        hooks: results of hooks that this process has called.
        printed: what the user code of the run has printed in this process; None if it is nothing.
    """

    worker: str
    incarnation: str
    run: str = ""
    taken: int = 0
    rate_rps: float = 0.0
    told_to: float = 0.0
    checkpoints: list[Checkpoint]
    hooks: list[HookReport] = []
    printed: Printed | None = None
