"""The history of a run as one JSON document of many lines: the API sends it, and reports are made from it.

A run may have millions of leases, so the document is never in memory as a whole. Its first line has all that
exists once; each list begins and ends with a line of its own, and each of its items is a line. So a
reader (`oku_cli.report.history_reader`) can go line by line, and keep only what it needs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from oku_coordinator.ledger import Ledger, batches
from oku_coordinator.ledger.rules import closing
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.tables import lease_table, run_table, schedule_table
from oku_core.results.run_period import RunPeriod
from oku_core.results.summary import Summary
from oku_core.spec.parser import build_mapping

_SAMPLES_AT_ONCE = 100


def write_run_history(ledger: Ledger, summary: Summary, now: float) -> Iterator[bytes]:
    """Whole lines, some at a time: `at`, `summary`, `spec`, `extent`, `periods`, and the lists below.

    Each piece shows the ledger as it is when the piece is taken, so leases of a run that goes on may be newer
    than the summary. To hold one state of the ledger for a slow reader would let its write-ahead log grow.

    Args:
        ledger: keeps the run; it is read as the pieces are taken.
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
        "summary": summary,
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
