"""The checkpoint of a lease: what came of it since its start, and what of it is still in flight.

A checkpoint is a state rather than a difference. The newest one counts, so a lost, doubled or late one
changes nothing; a worker repeats its newest one until the coordinator has confirmed its sequence number.
`find_fault` and `find_batch_fault` check what is plausible by itself; the ledger checks whether a checkpoint
contains its predecessor, and decides whether it counts.
"""

import operator
from itertools import chain

import msgspec

from oku_core.accounting.counts import FIGURE_LIMIT, Counts
from oku_core.accounting.index_ranges import Range, count_packed, is_packed, iter_ranges, merge_ranges
from oku_core.accounting.outcome import (
    LONGEST_REASON,
    NOT_SENT,
    OUTCOMES,
    Outcome,
    is_account,
)
from oku_core.messaging.hook import HookReport

LONGEST_REFUSAL = 1_000
"""The longest reason of a refusal, in characters."""
LONGEST_NAME = 200
"""The longest phase or name of a part, in characters."""
MOST_FAILED_RANGES = 4096
"""How many ranges of failed positions a lease names; what is beyond them is only counted."""
MOST_INNER_PARTS = 2_000
"""How many names of inner requests a lease tells of, in all phases."""
OTHER_NAMES = "(other names)"
"""The name of inner requests whose names are beyond what is told apart."""
MOST_TRACEBACKS, LONGEST_TRACEBACK = 16, 4_000
"""How many tracebacks a lease tells of, and the longest, in characters."""
_FIGURES = (
    "started_at", "ended_at", "cpu_s", "peak_rss_mb", "max_lag_s", "busy_share", "clock_step_s",
    "watched_s", "underfilled_s",
)  # fmt: skip


class Part(Counts, frozen=True, kw_only=True):
    """What came of the requests of one phase and one name, since the start of the lease.

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
    """

    phase: str = ""
    name: str = ""
    per_second: dict[int, list[int]] = msgspec.field(default_factory=dict)
    sent_per_second: dict[int, int] = msgspec.field(default_factory=dict)
    failed: dict[Outcome, list[int]] = msgspec.field(default_factory=dict)


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one lease. It covers the positions `[0, done)` except for those in flight.

    Attributes:
        lease: the id of the lease.
        sequence: rises with each checkpoint of the lease, from 1.
        done: the first position that was not taken.
        end: the first position that will not be taken; below the length of the lease once it was shortened.
        in_flight: the positions below `done` that have no outcome, in ascending order; at most as many as the
            concurrency.
        is_final: whether the worker has finished with the lease: it takes no further position, and what
            `in_flight` names was given back.
        parts: what came of the covered positions; parts that have not changed since a checkpoint that was
            confirmed may be left out.
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
        underfilled_s: those of them in which less than 97 % of the window was in flight although indices were
            untaken; where a highest rate or users hold it back, those in which it was for lack of work.
        untouched: those of `in_flight` that were given back and certainly never sent; they are not counted as
            perhaps sent again. In ascending order; a position in it stays in it.
        inner: what came of the inner requests, those that user code made within iterations, by phase and
            name. Beside the account: they sum to nothing, and `failed` is empty; the positions of their
            reasons are those of the iterations.
        tracebacks: where exceptions of user code came from, by their reason: the first of each.
        refusal: the reason, in one line, why the worker could not begin, such as a missing file or engine;
            empty if it could. A refusal is final and covers no requests.
    """

    lease: str
    sequence: int
    done: int
    end: int
    in_flight: list[int] = []
    is_final: bool = False
    parts: list[Part] = []
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
    untouched: list[int] = []
    inner: list[Part] = []
    tracebacks: dict[str, str] = {}
    refusal: str = ""

    @property
    def covered(self) -> int:
        """The number of requests that the checkpoint accounts for."""
        return self.done - len(self.in_flight)


class CheckpointBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoints of one process of one worker, taken at one instant.

    Attributes:
        worker: the name of the worker.
        incarnation: the id of the worker's process; a restarted worker has the same name and another
            incarnation.
        run: the run that `taken` and `rate_rps` tell of.
        taken: how many indices this process has taken of the run so far.
        rate_rps: the requests of the run that end in a second, as measured of late; 0 while it is unknown.
        told_to: the Unix time up to which the seconds of this process are told, by the clock of its machine
            and by the coordinator's, as far as it knows that, whichever is behind; 0 if it does not say.
        checkpoints: of all open leases that have something new, and of those that are final and not yet
            confirmed, in the order in which the worker works on them.
        hooks: what came of hooks that this process has called.
    """

    worker: str
    incarnation: str
    run: str = ""
    taken: int = 0
    rate_rps: float = 0.0
    told_to: float = 0.0
    checkpoints: list[Checkpoint]
    hooks: list[HookReport] = []


def find_batch_fault(batch: CheckpointBatch) -> str | None:
    """Say what is wrong with the figures of a message beside its checkpoints; None if nothing is."""
    for name in ("taken", "rate_rps", "told_to"):
        figure = getattr(batch, name)
        if not 0 <= figure < FIGURE_LIMIT:
            return f"{name} is {figure}"
    return next((fault for report in batch.hooks if (fault := report.find_fault())), None)


def find_unsent(checkpoint: Checkpoint) -> list[Range]:
    """The positions that a worker took and certainly did not send, as far as the checkpoint names them.

    They are ranges in rising order.
    """
    untouched = ((position, position + 1) for position in checkpoint.untouched)
    skipped = (iter_ranges(part.failed.get(Outcome.NOT_SENT, [])) for part in checkpoint.parts)
    return list(merge_ranges(sorted((*untouched, *chain.from_iterable(skipped)))))


def find_fault(checkpoint: Checkpoint, length: int) -> str | None:
    """Say why a checkpoint of a lease of `length` indices cannot be true; None if it can.

    Whether the parts sum to what is covered depends on those that were sent before, and is for the ledger.
    """
    return (
        _find_position_fault(checkpoint, length)
        or next((fault for part in checkpoint.parts if (fault := _find_part_fault(part))), None)
        or _find_failed_fault(checkpoint)
        or _find_reason_place_fault(checkpoint, length)
        or _find_figure_fault(checkpoint)
        or _find_refusal_fault(checkpoint)
        or _find_untouched_fault(checkpoint)
        or _find_inner_faults(checkpoint)
        or _find_traceback_fault(checkpoint)
    )


def _find_position_fault(checkpoint: Checkpoint, length: int) -> str | None:
    if not 0 <= checkpoint.done <= checkpoint.end <= length:
        return f"it is done to {checkpoint.done} of {checkpoint.end}, but the lease has {length} positions"
    if not 1 <= checkpoint.sequence < FIGURE_LIMIT:
        return f"its sequence number is {checkpoint.sequence}"
    positions = [-1, *checkpoint.in_flight, checkpoint.done]
    if not all(map(operator.lt, positions, positions[1:])):
        return "the positions in flight do not rise within what is done"
    if len({(part.phase, part.name) for part in checkpoint.parts}) != len(checkpoint.parts):
        return "two parts have the same phase and name"
    return None


def _find_part_fault(part: Part) -> str | None:
    return _find_name_fault(part) or _find_second_fault(part) or part.find_fault()


def _find_name_fault(part: Part) -> str | None:
    if all(len(text) <= LONGEST_NAME and text.isprintable() for text in (part.phase, part.name)):
        return None
    return f"a phase or name is not one line of up to {LONGEST_NAME} printable characters"


def _find_second_fault(part: Part) -> str | None:
    if not all(map(is_account, part.per_second.values())):
        return "the outcomes of a second are not the counts of each"
    if not all(0 <= second < FIGURE_LIMIT for second in (*part.per_second, *part.sent_per_second)):
        return "a second is out of range"
    if not all(0 <= sent < FIGURE_LIMIT for sent in part.sent_per_second.values()):
        return "the requests sent in a second are not a count"
    return None


def _find_failed_fault(checkpoint: Checkpoint) -> str | None:
    """Each failed position is covered, and has failed once."""
    named = [(part, outcome) for part in checkpoint.parts for outcome in part.failed]
    if not named:
        return None
    for part, outcome in named:
        packed, count = part.failed[outcome], part.outcomes[OUTCOMES.index(outcome)]
        if outcome == Outcome.OK or not is_packed(packed) or count_packed(packed) > count:
            return f"the positions that are {outcome} are not ranges of up to {count} positions"
    ranges = sorted(span for part, outcome in named for span in iter_ranges(part.failed[outcome]))
    if len(ranges) > MOST_FAILED_RANGES:
        return f"{len(ranges)} ranges of positions have failed, but {MOST_FAILED_RANGES} is the most to name"
    ranges += [(position, position + 1) for position in checkpoint.in_flight]
    ranges.sort()
    if any(map(operator.gt, (stop for _, stop in ranges), (start for start, _ in ranges[1:]))):
        return "a position has failed twice, or has failed and is in flight"
    return "a position has failed that was not taken" if ranges[-1][1] > checkpoint.done else None


def _find_reason_place_fault(checkpoint: Checkpoint, length: int) -> str | None:
    """Each position of a reason is one of the lease: the ledger looks its index up."""
    last = max((count.last for part in checkpoint.parts for count in part.reasons), default=-1)
    return f"a reason names position {last}, but the lease has {length}" if last >= length else None


def _find_figure_fault(checkpoint: Checkpoint) -> str | None:
    for name in _FIGURES:
        figure = getattr(checkpoint, name)
        if not 0 <= figure < FIGURE_LIMIT:  # NaN fails this comparison, too
            return f"{name} is {figure}"
    for name in ("saturated", "lagged"):
        if not 0 <= (requests := getattr(checkpoint, name)) <= checkpoint.covered:
            return f"{requests} requests are {name}, but {checkpoint.covered} are covered"
    return None


def _find_refusal_fault(checkpoint: Checkpoint) -> str | None:
    if checkpoint.refusal and (checkpoint.done or not checkpoint.is_final):
        return f"it refuses the lease and is done to {checkpoint.done}"
    if len(checkpoint.refusal) > LONGEST_REFUSAL or not checkpoint.refusal.isprintable():
        return f"the refusal is not one line of up to {LONGEST_REFUSAL} printable characters"
    return None


def _find_untouched_fault(checkpoint: Checkpoint) -> str | None:
    untouched = set(checkpoint.untouched)
    if sorted(untouched) != checkpoint.untouched or not untouched <= set(checkpoint.in_flight):
        return "what is untouched does not rise, or is not in flight"
    return None


def _find_inner_faults(checkpoint: Checkpoint) -> str | None:
    if not checkpoint.inner:
        return None
    if len(checkpoint.inner) > MOST_INNER_PARTS:
        return f"{len(checkpoint.inner)} inner parts are told of, but {MOST_INNER_PARTS} is the most"
    if len({(part.phase, part.name) for part in checkpoint.inner}) != len(checkpoint.inner):
        return "two inner parts have the same phase and name"
    if fault := next((fault for part in checkpoint.inner if (fault := _find_inner_fault(part))), None):
        return f"inner requests: {fault}"
    last = max((count.last for part in checkpoint.inner for count in part.reasons), default=-1)
    if last >= checkpoint.done:
        return f"inner requests: a reason names position {last}, but only {checkpoint.done} were taken"
    return None


def _find_traceback_fault(checkpoint: Checkpoint) -> str | None:
    tracebacks = checkpoint.tracebacks
    is_long = any(
        len(reason) > LONGEST_REASON or len(text) > LONGEST_TRACEBACK for reason, text in tracebacks.items()
    )
    if is_long or len(tracebacks) > MOST_TRACEBACKS:
        return "there are too many tracebacks, or one is too long"
    return None


def _find_inner_fault(part: Part) -> str | None:
    if not part.name:
        return "they have no name"
    if fault := part.find_count_fault():
        return fault
    if part.failed or part.sent_per_second or part.outcomes[NOT_SENT]:
        return "they have what only iterations have"
    return _find_part_fault(part)
