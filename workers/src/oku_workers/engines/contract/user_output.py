"""What user code prints: the first lines for the screen, and a file with the rest."""

import logging
import os
from pathlib import Path
from typing import Literal

from oku_core.messaging.printed import LONGEST_PRINTED_LINE, MOST_PRINTED_LINES, Printed

_log = logging.getLogger(__name__)

MOST_FILE_BYTES = 10_000_000
"""The longest file of a worker."""


class UserOutput:
    """Keeps what the user code of the latest run prints; belongs to the thread of the event loop.

    Args:
        file: where to write it, anew for each run; None writes it nowhere.

    Attributes:
        has_news: whether something was printed since the last `find`.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._run = ""
        self._lines: list[str] = []
        self._count = 0
        self._size: int | None = None
        """Of the file; None before its first line for the run."""
        self.has_news = False

    def record(self, run: str, line: str) -> None:
        """Keep a line, redacted and printable, that the user code of a run has printed."""
        if run != self._run:
            self._run, self._lines, self._count, self._size = run, [], 0, None
        self._count += 1
        self.has_news = True
        if len(self._lines) < MOST_PRINTED_LINES:
            self._lines.append(line[:LONGEST_PRINTED_LINE])
        self._write(f"{line}\n".encode(errors="backslashreplace"))

    def find(self, run: str) -> Printed | None:
        """What the user code of a run has printed; None if it is nothing."""
        if not self._count or run != self._run:
            return None
        self.has_news = False
        file = "" if self._file is None else str(self._file)
        return Printed(run=run, lines=list(self._lines), count=self._count, file=file)

    def _write(self, line: bytes) -> None:
        """Write a line, unless the file is full; a file that cannot be written is given up."""
        if self._file is None or (self._size or 0) + len(line) > MOST_FILE_BYTES:
            return
        try:
            if self._size is None:
                self._size = _begin_file(self._file, f"run {self._run}\n".encode())
            _append(self._file, "ab", line)
        except OSError as error:
            _log.warning("user code: %s cannot be written: %s", self._file, error.strerror)
            self._file = None
            return
        self._size += len(line)


def _begin_file(path: Path, head: bytes) -> int:
    """Begin a file with this line, or go on with one that has it, of a process before; return its size."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            if file.read(len(head)) == head:
                return path.stat().st_size
    _append(path, "wb", head)
    return len(head)


def _append(path: Path, mode: Literal["ab", "wb"], line: bytes) -> None:
    with open(path, mode, opener=_open_private) as file:  # a path has no opener
        file.write(line)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
