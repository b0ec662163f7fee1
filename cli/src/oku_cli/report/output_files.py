"""Makes files of the history of a run, writes them, and prints a note for each: pages, JSON, CSV."""

import csv
import io
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, Self

import msgspec

from oku_cli.report.hgrm import build_hgrm
from oku_cli.report.history_reader import RunHistory, RunHistoryReader, decode_head
from oku_cli.report.masking import mask_spec
from oku_cli.terminal.ci_commands import defuse
from oku_cli.terminal.printable import escape_json, needs_ascii, write_note
from oku_core.accounting.outcome import OUTCOMES
from oku_core.errors import UserError
from oku_core.results.lines import build_sample_fields
from oku_core.results.sample import LIVE_QUANTILES
from oku_core.spec.values.quantity import format_bytes
from oku_core.tables.time_tables import LATENCY

STANDARD_OUTPUT = "-"
CSV_COLUMNS = (
    "at", "state", "seconds", "requests_total", "accounted", "leased", "pending", "done", "resent_at_most",
    "active_s", "requests_ended", "requests_sent", "requests_planned", "phase", *OUTCOMES, "bytes_received",
    "rate_rps", "in_flight", "mean_ms", *LIVE_QUANTILES, "workers", "lag_s", "clock_bound_s",
)  # fmt: skip
"""The columns as docs/metrics.md describes them; `at` is the Unix time at which a sample ended."""


class HistoryFormat(Protocol):
    """Makes the content of a file from the history of a run."""

    def __call__(self, history: RunHistory, /) -> str | bytes:
        """The content."""


class OutputStream:
    """Takes the content of a file, and counts its bytes: a pipe has no position."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0

    def write(self, data: bytes) -> None:
        """Write all of it."""
        self._file.write(data)
        self.size += len(data)


@dataclass(frozen=True)
class OutputFile:
    """A file to be written, which a flag has asked for.

    A path of `-` is standard output, and with None it is not written. Without a `build`, its content is the
    lines of the history.
    """

    flag: str
    path: str | None
    build: HistoryFormat | None

    def check(self) -> None:
        """Raise `UserError` early if it is already clear that the file cannot be written."""
        if self.path is not None:
            check_output(self.flag, self.path)

    def write(self, history: RunHistory) -> None:
        """Build the content and write it; raise `UserError` if it cannot be written."""
        if self.path is None or self.build is None:
            return
        content = self.build(history)
        with open_output(self.flag, self.path) as output:
            output.write(content if isinstance(content, bytes) else content.encode())


class ReportWriter:
    """Writes files about a run from the lines of its history, and keeps as little of them as it can.

    Args:
        outputs: the files to write; those without a `build` get the lines themselves.
        show_secrets: whether those lines contain possible secrets.
    """

    def __init__(self, outputs: Sequence[OutputFile], *, show_secrets: bool = False) -> None:
        self._outputs = outputs
        self._show_secrets = show_secrets
        self._reader = RunHistoryReader()
        self._files = ExitStack()
        self._streams: list[OutputStream] | None = None

    def __enter__(self) -> Self:
        """Open nothing yet: the files are opened at the first line."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files that are open."""
        self._files.close()

    def write_line(self, line: bytes) -> None:
        """Take the next line, without its newline; raise `UserError` if it cannot be read."""
        try:
            self._reader.read_line(line)
        except ValueError as error:
            raise _build_error(error) from error
        if self._streams is None:
            line = line if self._show_secrets else mask_head(line)
            streamed = [output for output in self._outputs if output.build is None]
            self._streams = [
                self._files.enter_context(open_output(output.flag, str(output.path))) for output in streamed
            ]
        for stream in self._streams:
            stream.write(escape_json(line, is_ascii=needs_ascii()) + b"\n")

    def finish(self) -> None:
        """Write the files that need the whole history; raise `UserError` if lines are missing."""
        try:
            history = self._reader.finish()
        except ValueError as error:
            raise _build_error(error) from error
        self._files.close()
        for output in self._outputs:
            output.write(history)


def _build_error(error: ValueError) -> UserError:
    return UserError(f"the run has no report, its history cannot be read: {error}")


def check_output(flag: str, path: str) -> None:
    """Raise `UserError` early if it is clear that a file, or standard output for `-`, cannot be written."""
    if path == STANDARD_OUTPUT:
        return
    if Path(path).is_dir() or not Path(path).absolute().parent.is_dir():
        raise UserError(f"{flag}: {path} is not a file that can be written")


@contextmanager
def open_output(flag: str, path: str) -> Iterator[OutputStream]:
    """Open a file, or standard output for `-`, and print a note once a file on disk is complete.

    Raises:
        UserError: the file cannot be written.
    """
    if path == STANDARD_OUTPUT:
        yield OutputStream(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        with Path(path).open("wb") as file:
            stream = OutputStream(file)
            yield stream
    except OSError as error:
        raise UserError(f"{flag}: {path}: {error.strerror}") from error
    write_note(f"wrote {path} ({format_bytes(stream.size)})")


def mask_head(line: bytes) -> bytes:
    """Mask the secrets in the first line of a history; no later line contains any."""
    head = decode_head(line)
    return msgspec.json.encode(msgspec.structs.replace(head, spec=mask_spec(head.spec)))[:-1]


def build_csv(history: RunHistory) -> str:
    """Write one line for each sample; unknown values are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    states = [event for event in history.events if event.state is not None]
    for sample in history.samples:
        entered = bisect_right(states, sample.at, key=lambda event: event.at)
        state = states[entered - 1].state if entered else ""
        writer.writerow({"at": round(sample.at, 3), "state": state, **build_sample_fields(sample)})
    return defuse(text.getvalue())


def build_hgrm_text(history: RunHistory) -> str:
    """Write the latencies of the whole run as HdrHistogram text, in ms."""
    return build_hgrm(LATENCY.decode(history.summary))
