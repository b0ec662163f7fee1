"""Checks whether checkpoints are plausible by themselves: conditions that hold for every lease.

Whether the parts sum to the covered positions depends on earlier ones; the ledger checks that.
"""

import operator

import msgspec

from oku_core.accounting.counts import FIGURE_LIMIT
from oku_core.accounting.index_ranges import count_packed, is_packed, iter_ranges
from oku_core.accounting.outcome import LONGEST_REASON, NOT_SENT, OUTCOMES, Outcome, is_account
from oku_core.messaging.checkpoint import (
    LONGEST_NAME,
    LONGEST_REFUSAL,
    LONGEST_TRACEBACK,
    MOST_FAILED_RANGES,
    MOST_INNER_PARTS,
    MOST_REASON_RANGES,
    MOST_TRACEBACKS,
    Checkpoint,
    CheckpointBatch,
    Part,
)
from oku_core.messaging.reason_runs import NOT_KEPT, count_places, is_run_list

_OF_REQUESTS = ("saturated", "lagged")


def find_batch_fault(batch: CheckpointBatch) -> str | None:
    """Return the fault of the figures of a message beside its checkpoints; None if they are valid."""
    for name in ("taken", "rate_rps", "told_to"):
        figure = getattr(batch, name)
        if not 0 <= figure < FIGURE_LIMIT:
            return f"{name} is {figure}"
    fault = None if batch.printed is None else batch.printed.find_fault()
    return fault or next((fault for report in batch.hooks if (fault := report.find_fault())), None)


def find_fault(checkpoint: Checkpoint, length: int) -> str | None:
    """Find why a checkpoint of a lease of `length` indices cannot be true; None if it can."""
    return (
        _find_position_fault(checkpoint, length)
        or next((fault for part in checkpoint.parts if (fault := _find_part_fault(part))), None)
        or _find_failed_fault(checkpoint)
        or _find_reason_run_fault(checkpoint)
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


def _find_reason_run_fault(checkpoint: Checkpoint) -> str | None:
    """The runs are of listed positions, and no reason has more of them than requests."""
    kept = 0
    for part in checkpoint.parts:
        for outcome, runs in part.failed_reasons.items():
            if outcome not in part.failed or not is_run_list(runs):
                return f"the reasons of the positions that are {outcome} are not runs"
            counts = count_places(runs)
            kept += sum(number > NOT_KEPT for number in runs)
            if counts.total() != count_packed(part.failed[outcome]):
                return f"{counts.total()} positions that are {outcome} have a reason, but others are listed"
            if any(not _may_have(part, outcome, *each) for each in counts.items()):
                return f"more positions are {outcome} for a reason than requests, or there is no such reason"
    if kept > MOST_REASON_RANGES:
        return f"{kept} runs of positions have a reason, but {MOST_REASON_RANGES} is the most to keep"
    return None


def _may_have(part: Part, outcome: Outcome, place: int, count: int) -> bool:
    """Whether this number of positions with an outcome may have the reason at a place."""
    if place == NOT_KEPT:
        return True
    if place > len(part.reasons):
        return False
    reason = part.reasons[place - 1]
    return OUTCOMES[reason.outcome] is outcome and count <= reason.requests


def _find_reason_place_fault(checkpoint: Checkpoint, length: int) -> str | None:
    """Each position of a reason is one of the lease: the ledger looks its index up."""
    last = max((count.last for part in checkpoint.parts for count in part.reasons), default=-1)
    return f"a reason names position {last}, but the lease has {length}" if last >= length else None


def _find_figure_fault(checkpoint: Checkpoint) -> str | None:
    for name, figure in msgspec.structs.asdict(checkpoint.figures).items():
        if name in _OF_REQUESTS and not 0 <= figure <= checkpoint.covered:
            return f"{figure} requests are {name}, but {checkpoint.covered} are covered"
        if not 0 <= figure < FIGURE_LIMIT:  # NaN fails this comparison, too
            return f"{name} is {figure}"
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
    if part.failed or part.failed_reasons or part.sent_per_second or part.outcomes[NOT_SENT]:
        return "they have what only iterations have"
    return _find_part_fault(part)
