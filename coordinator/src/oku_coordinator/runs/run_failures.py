"""The failed requests of a run as one JSON document of many lines, which is never in memory as a whole.

Its first line has all that exists once; each item of the list `failures` is a line, in the order of indices.
"""

from collections.abc import Iterator

import msgspec

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import failed_requests
from oku_coordinator.ledger.tables import run_table
from oku_core.results.failed_range import FailedRange, FailuresHead
from oku_core.spec.parser import build_mapping

_SPANS_AT_ONCE = 1000


def write_failures(ledger: Ledger, run: str) -> Iterator[bytes]:
    """Whole lines, some at a time; `UnknownRunError` with the first when there is no such run."""
    with ledger.read() as t:
        record = run_table.fetch_run(t, run)
    with ledger.read() as t:
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
        spans = (
            FailedRange(start=span.start, stop=span.stop, outcome=span.outcome, target=span.name)
            for span in failed.spans[place : place + _SPANS_AT_ONCE]
        )
        yield comma + b"\n,".join(map(msgspec.json.encode, spans)) + b"\n"
        comma = b","
    yield b"]}\n"
