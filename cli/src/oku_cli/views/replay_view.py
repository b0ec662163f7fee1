"""Shows one request or one iteration of a run, and its result when it is replayed."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from oku_cli.terminal.printable import write_line
from oku_core.accounting.outcome import Outcome
from oku_core.spec.values.quantity import format_bytes
from oku_core.tables.formatting import format_count, format_latency, format_outcome


class ShownRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it is sent, without secrets.

    The target is empty if the run names none, and the row None if it has no data. A body is None if there is
    none, or if it is not text.
    """

    run: str
    index: int
    target: str
    url: str
    line: str
    headers: Sequence[tuple[str, str]]
    body: str | None
    body_bytes: int
    row: Mapping[str, str] | None


class ShownAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer.

    The body is its beginning without compression, or None if that is not text; `is_whole` is True if that
    is all of it. The size is the number of bytes sent.
    """

    status: int
    line: str
    headers: Sequence[tuple[str, str]]
    body: str | None
    body_bytes: int
    is_whole: bool


class ShownOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request; its time is from sending to the last byte of a complete answer."""

    outcome: Outcome
    reason: str
    time_ms: float | None
    answer: ShownAnswer | None


def print_request(request: ShownRequest) -> None:
    """Write which request it is, and the request itself."""
    asked = f" asks target {request.target}" if request.target else ""
    write_line(f"Request {request.index} of run {request.run}{asked}: {request.url}")
    _write_row(request.row)
    for line in _list_message(request.line, request.headers, request.body or ""):
        write_line(line)
    if request.body is None and request.body_bytes:
        write_line(f"({format_count(request.body_bytes)} bytes that are not text)")


def print_outcome(outcome: ShownOutcome) -> None:
    """Write the answer, and what it counts as."""
    if (answer := outcome.answer) is not None:
        for line in _list_message(answer.line, answer.headers, answer.body or ""):
            write_line(line)
        if answer.body is None:
            write_line(f"({format_count(answer.body_bytes)} bytes that are not text)")
        elif not answer.is_whole:
            write_line(f"(this is the beginning; {format_count(answer.body_bytes)} bytes came)")
    _write_result(outcome)


def _write_row(row: Mapping[str, str] | None) -> None:
    if row is not None:
        write_line("Row: " + ", ".join(f"{column}={value}" for column, value in row.items()))


def _list_message(first: str, headers: Sequence[tuple[str, str]], body: str) -> Iterator[str]:
    """The lines of a message of HTTP, with a blank one before it."""
    yield ""
    yield first
    yield from (f"{name}: {value}" for name, value in headers)
    if body:
        yield ""
        yield from body.splitlines()


class ShownIteration(msgspec.Struct, frozen=True, kw_only=True):
    """An iteration: its user code, the host that runs it, and its row of data."""

    run: str
    index: int
    scenario: str
    engine: str
    row: Mapping[str, str] | None


class ShownInner(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one name that an iteration has made, and why some are not ok."""

    name: str
    requests: int
    ok: int
    statuses: Mapping[str, int]
    bytes_received: int
    longest_ms: float
    reasons: Sequence[str]


class ShownIterationOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an iteration, and its requests; without a time, it did not end by itself."""

    outcome: Outcome
    reason: str
    time_ms: float | None
    traceback: str
    requests: Sequence[ShownInner]


def print_iteration(iteration: ShownIteration) -> None:
    """Write which iteration it is."""
    write_line(f"Iteration {iteration.index} of run {iteration.run}: {iteration.scenario}")
    _write_row(iteration.row)


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
    _write_result(outcome)


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


def _write_result(result: ShownOutcome | ShownIterationOutcome) -> None:
    write_line("")
    reason = f": {result.reason}" if result.reason else ""
    time = f", after {format_latency(result.time_ms)}" if result.time_ms is not None else ""
    write_line(f"{format_outcome(result.outcome)}{reason}{time}")
