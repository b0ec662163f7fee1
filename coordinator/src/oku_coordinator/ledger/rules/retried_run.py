"""A run over exactly the failed requests of another one: the request space is the same, the rest is unused.

So the request of index i is the same. A retry of a run with a rate or a time limit has neither; it keeps as
many requests in flight as the original may have. Thresholds cover all requests of a run: a retry has none.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.failed_requests import count_failed, read_failed
from oku_coordinator.ledger.storage.records import RetryRecord, RunRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import run_table, slice_table
from oku_coordinator.ledger.tables.submission_table import fetch_retry, insert_retry
from oku_core.accounting.index_ranges import Range, merge_ranges
from oku_core.accounting.interval import Slice, SliceState, build_partition
from oku_core.errors import UserError
from oku_core.results.failure_filter import FailureFilter, FailureSplitter, build_failed_range
from oku_core.spec.description import RequestLines, describe_load
from oku_core.spec.load import build_schedule
from oku_core.spec.spec import OPEN_END, Spec

_ALL = FailureFilter()


class _Selection(NamedTuple):
    """The requests that are retried, and how many others had failed."""

    ranges: list[Range]
    unlisted: int
    unjudged: int


def create_retry(
    transaction: Transaction, run: str, retried: str, now: float, only: FailureFilter = _ALL
) -> RunRecord:
    """Insert a new run over the failed requests of a run at rest.

    Args:
        transaction: to write in.
        run: the id of the new run.
        retried: the id of the other run; `UnknownRunError` if it does not exist.
        now: Unix time.
        only: which of the failed requests.

    Raises:
        UserError: the other run is not at rest, or none of these failed requests is known.
    """
    record = run_table.fetch_run(transaction, retried)
    if not record.is_at_rest:
        raise UserError(f"run {retried} is {record.state}; it can be retried once it is paused or over")
    only.check(record.spec, retried)
    selection = _select(transaction, record, only)
    ranges = selection.ranges
    if not ranges:
        raise UserError(f"run {retried} has no failed request{_describe_none(selection, only)}")
    listed = sum(stop - start for start, stop in ranges)
    spec = build_retry_spec(record.spec, ranges[-1][1])
    run_table.insert_run(transaction, run, spec, now)
    slice_table.insert_slices(transaction, run, build_partition(_list_slices(ranges, spec.requests)))
    run_table.set_requests(transaction, run, listed)
    run_table.set_load(transaction, run, describe_load(msgspec.structs.replace(spec, requests=listed)))
    before = fetch_retry(transaction, retried)
    insert_retry(
        transaction,
        run,
        RetryRecord(
            retried=retried,
            origin=before.origin if before else retried,
            requests=before.requests if before else record.requests,
            ok=(before.ok if before else 0) + record.outcomes[0],
            unlisted=selection.unlisted,
            unjudged=selection.unjudged,
        ),
    )
    lifecycle.record_submission(transaction, run, now)
    return run_table.fetch_run(transaction, run)


def _select(transaction: Transaction, record: RunRecord, only: FailureFilter) -> _Selection:
    splitter = FailureSplitter(record.spec, RequestLines(record.spec))
    ranges: list[Range] = []
    listed = unjudged = 0
    for span in read_failed(transaction, record.run):
        listed += span.stop - span.start
        failed = build_failed_range(*span)
        for each in (failed,) if only.target is None else splitter.split(failed):
            if only.selects(each):
                ranges.append((each.start, each.stop))
            elif only.lacks_reason(each):
                unjudged += each.stop - each.start
    return _Selection(list(merge_ranges(ranges)), count_failed(transaction, record.run) - listed, unjudged)


def _describe_none(selection: _Selection, only: FailureFilter) -> str:
    """Why there is nothing to retry."""
    parts = [" to retry" if only.selects_all else " of these to retry"]
    if selection.unjudged:
        parts.append(f": of {selection.unjudged} the ledger does not know the reason")
    elif selection.unlisted:
        parts.append(f": {selection.unlisted} have failed, but the ledger does not know which")
    return "".join(parts)


def build_retry_spec(spec: Spec, stop: int) -> Spec:
    """The spec of a retry of requests of another run, all below index `stop`."""
    requests = stop if spec.requests == OPEN_END else spec.requests
    if spec.is_open:
        requests = build_schedule(spec).requests
    closed = Spec()
    return msgspec.structs.replace(
        spec,
        requests=requests,
        rate=None,
        duration_s=None,
        stages=(),
        arrivals=closed.arrivals,
        late=closed.late,
        warm_up_s=None,
        thresholds=(),
    )


def _list_slices(ranges: Sequence[Range], requests: int) -> Iterator[Slice]:
    at = 0
    for start, stop in ranges:
        yield Slice(at, start, SliceState.UNUSED)
        yield Slice(start, stop, SliceState.PENDING)
        at = stop
    yield Slice(at, requests, SliceState.UNUSED)
