"""Shows one iteration of a run of user code, and what came of making it once."""

from collections.abc import Mapping, Sequence

import msgspec

from oku_cli.terminal.printable import write_line
from oku_core.accounting.outcome import Outcome
from oku_core.spec.values.quantity import format_bytes
from oku_core.tables.formatting import format_count, format_latency, format_outcome


class ShownIteration(msgspec.Struct, frozen=True, kw_only=True):
    """An iteration.

    Attributes:
        run: the id of its run.
        index: its index.
        scenario: the file of user code.
        engine: what runs it.
        row: the row of its data, by columns; None if the run has none.
    """

    run: str
    index: int
    scenario: str
    engine: str
    row: Mapping[str, str] | None


class ShownInner(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one name that an iteration has made.

    Attributes:
        name: theirs.
        requests: how many there were.
        ok: how many of them were ok.
        statuses: how many had each status.
        bytes_received: of their bodies.
        longest_ms: how long the longest took.
        reasons: why some are not ok.
    """

    name: str
    requests: int
    ok: int
    statuses: Mapping[str, int]
    bytes_received: int
    longest_ms: float
    reasons: Sequence[str]


class ShownIterationOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an iteration.

    Attributes:
        outcome: what it counts as.
        reason: why it is not ok; empty if it is.
        time_ms: how long it took; None if it did not end by itself.
        traceback: where its exception came from; empty without one.
        requests: those that it has made, by name.
    """

    outcome: Outcome
    reason: str
    time_ms: float | None
    traceback: str
    requests: Sequence[ShownInner]


def print_iteration(iteration: ShownIteration) -> None:
    """Write which iteration it is."""
    write_line(f"Iteration {iteration.index} of run {iteration.run}: {iteration.scenario}")
    if iteration.row is not None:
        write_line("Row: " + ", ".join(f"{column}={value}" for column, value in iteration.row.items()))


def print_iteration_outcome(outcome: ShownIterationOutcome) -> None:
    """Write its requests, where it failed, and what it counts as."""
    if outcome.requests:
        write_line("")
    for inner in outcome.requests:
        write_line(_describe(inner))
    if outcome.traceback:
        write_line("")
        for line in outcome.traceback.rstrip().splitlines():
            write_line(line)
    write_line("")
    reason = f": {outcome.reason}" if outcome.reason else ""
    time = f", after {format_latency(outcome.time_ms)}" if outcome.time_ms is not None else ""
    write_line(f"{format_outcome(outcome.outcome)}{reason}{time}")


def _describe(inner: ShownInner) -> str:
    """`2 times login: ok, 200, up to 1.70 ms, 1.2 kB`."""
    times = f"{format_count(inner.requests)} times " if inner.requests > 1 else ""
    ok = "ok" if inner.ok == inner.requests else f"{inner.ok} of {inner.requests} ok"
    most = "up to " if inner.requests > 1 else ""
    parts = (
        ok,
        *inner.statuses,
        *([f"{most}{format_latency(inner.longest_ms)}"] if inner.longest_ms else []),
        format_bytes(inner.bytes_received),
        *inner.reasons,
    )
    return f"{times}{inner.name}: {', '.join(parts)}"
