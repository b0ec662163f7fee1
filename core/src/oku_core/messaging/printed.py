"""What user code prints: the first lines of a run, and where the rest is.

A worker reports its own lines beside its checkpoints; commands that follow a run get those of all workers.
"""

import msgspec

MOST_PRINTED_LINES = 20
"""How many lines of a run are shown."""
LONGEST_PRINTED_LINE = 400
"""In characters; the file has the rest of a longer line."""
_LONGEST_PATH = 1_000


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that one process of a worker has read from the user code of one run.

    Attributes:
        run: the run.
        lines: the first ones, redacted.
        count: how many there are.
        file: the path of the file that has them, on the worker's machine; empty if it cannot be written.
    """

    run: str
    lines: list[str]
    count: int
    file: str = ""

    def find_fault(self) -> str | None:
        """Return the fault of a received report; None if it is valid."""
        texts = [*self.lines, self.file]
        if len(self.lines) > MOST_PRINTED_LINES or self.count < len(self.lines):
            return f"user code has printed {self.count} lines, of which {len(self.lines)} are reported"
        if any(len(line) > LONGEST_PRINTED_LINE for line in self.lines) or len(self.file) > _LONGEST_PATH:
            return "a printed line, or the path of its file, is too long"
        return None if all(map(str.isprintable, texts)) else "a printed line is not one line"


class PrintedLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line, and the worker whose user code printed it."""

    worker: str
    text: str


class PrintedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The first lines that user code has printed, as long as the coordinator of the run lives.

    `count` is how many there are in all, and `files` has the path of the file with the rest by worker, on the
    machine of that worker.
    """

    lines: list[PrintedLine]
    count: int
    files: dict[str, str]
