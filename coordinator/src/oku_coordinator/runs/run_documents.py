"""A run as JSON documents: its summary, its row in lists, its history, its failed requests, rows of its data.

A run may have millions of leases, so the history is never in memory as a whole. Its first line has all single
values; each list starts and ends with its own line, and each item is a line. So a reader
(`oku_cli.report.history_reader`) can read it line by line and keep only the lines it needs. The failed
requests have the same format.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from oku_coordinator.ledger import Ledger, batches
from oku_coordinator.ledger.rules import failed_requests
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.leases import closing
from oku_coordinator.ledger.storage.records import RunRecord, RunRow
from oku_coordinator.ledger.tables import lease_table, run_table, schedule_table
from oku_coordinator.runs.summary.summaries import format_time
from oku_core.data.data_format import DataError
from oku_core.data.row_reader import read_rows
from oku_core.errors import UserError
from oku_core.results.failure_filter import build_failed_range
from oku_core.results.run_api import MOST_ROWS, FailuresHead, RunPeriod, RunRows
from oku_core.spec.parser import build_mapping
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import FindFile
from oku_core.summary.summary import Summary

_SAMPLES_AT_ONCE = 100


def encode_summary(summary: Summary) -> bytes:
    """The JSON of a summary; call it in a thread. It has 12 MB with a hundred targets in as many stages.

    No other thread runs while msgspec encodes, so each phase is encoded separately.
    """
    phases = [msgspec.Raw(msgspec.json.encode(phase)) for phase in summary.phases]
    return msgspec.json.encode(msgspec.structs.replace(summary, phases=phases))


def write_run_history(ledger: Ledger, summary: Summary, now: float) -> Iterator[bytes]:
    """Yield whole lines, some at a time: `at`, `summary`, `spec`, `extent`, `periods`, and the lists below.

    Each piece shows the ledger at the time of reading, so the leases of an active run may be newer than the
    summary. A snapshot for a slow reader would let the write-ahead log grow.

    Args:
        ledger: stores the run; it is read piece by piece.
        summary: the summary of the run.
        now: Unix time.
    """
    run = summary.run
    with ledger.read() as t:
        extent = closing.measure_extent(t, run)
        spec = run_table.fetch_run(t, run).spec
        periods = schedule_table.fetch_periods(t, run)
    head = {
        "at": now,
        "summary": msgspec.Raw(encode_summary(summary)),
        "spec": build_mapping(spec),
        "extent": extent,
        "periods": [RunPeriod(*period) for period in periods],
    }
    yield msgspec.json.encode(head)[:-1] + b"\n"
    with ledger.read() as t:
        history = fetch_history(t, run)
    yield from _write_list("samples", _cut(history.samples, _SAMPLES_AT_ONCE))
    yield from _write_list("events", [history.events])
    yield from _write_list("leases", batches.read_leases(ledger, run))
    yield from _write_list("slices", batches.read_slices(ledger, run))
    with ledger.read() as t:
        taken_back = lease_table.fetch_taken_back(t, run)
    yield from _write_list("again", [taken_back])
    yield b"}\n"


def _write_list(name: str, pages: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    comma = b""
    yield b',"%s":[\n' % name.encode()
    for page in pages:
        if page:
            yield comma + b"\n,".join(map(msgspec.json.encode, page)) + b"\n"
            comma = b","
    yield b"]\n"


def _cut(things: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (things[place : place + size] for place in range(0, len(things), size))


_SPANS_AT_ONCE = 1000


def write_failures(ledger: Ledger, run: str) -> Iterator[bytes]:
    """Yield whole lines, some at a time; raises `UnknownRunError` with the first one."""
    with ledger.read() as t:
        record = run_table.fetch_run(t, run)
        failed = failed_requests.fetch_failed_requests(t, run)
    head = FailuresHead(
        run=run,
        state=record.state,
        requests=failed.requests,
        unlisted=failed.unlisted,
        spec=build_mapping(record.spec),
    )
    yield msgspec.json.encode(head)[:-1] + b',"failures":[\n'
    comma = b""
    for place in range(0, len(failed.spans), _SPANS_AT_ONCE):
        spans = (build_failed_range(*span) for span in failed.spans[place : place + _SPANS_AT_ONCE])
        yield comma + b"\n,".join(map(msgspec.json.encode, spans)) + b"\n"
        comma = b","
    yield b"]}\n"


def read_run_rows(run: str, spec: Spec, find_file: FindFile, wanted: range) -> RunRows:
    """Read the rows of consecutive requests, fewer of them if they are long; blocking.

    Args:
        run: the id of the run.
        spec: its spec.
        find_file: finds the path of a file by its digest.
        wanted: the indices of the requests.

    Raises:
        UserError: the run has no data, or it cannot be read; or there are no such indices, or too many.
    """
    if spec.data is None:
        raise UserError(f"run {run} has no data")
    if not 0 <= wanted.start < wanted.stop <= spec.requests:
        raise UserError(
            f"start {wanted.start} and stop {wanted.stop} are not a range of the {spec.requests:,} indices"
            f" of run {run}"
        )
    if len(wanted) > MOST_ROWS:
        raise UserError(f"{len(wanted):,} rows were requested; one response has at most {MOST_ROWS:,}")
    data = spec.data
    try:
        rows = read_rows(data.locate(find_file), wanted)
    except DataError as error:
        raise UserError(f"data {data.name} cannot be used: {error}") from error
    return RunRows(run=run, start=wanted.start, rows=rows)


def build_row_object(row: RunRow) -> dict[str, Any]:
    """A run in the lists of the API, without its spec, which may be large."""
    return {
        "run": row.run,
        "name": row.name,
        "state": row.state,
        "reason": row.reason,
        "requests": row.requests,
        "accounted": row.accounted,
        "ok": row.outcomes[0],
        "engine": row.engine.engine,
        "engine_reason": row.engine.reason,
        "target": row.target,
        "load": row.load,
        "created_at": format_time(row.created_at),
        "started_at": format_time(row.started_at),
        "ended_at": format_time(row.ended_at),
        "active_s": round(row.active_s, 3),
    }


def build_run_object(record: RunRecord) -> dict[str, Any]:
    """A run in the responses of calls that change it: as in lists, with its spec."""
    return build_row_object(record) | {"spec": build_mapping(record.spec)}
