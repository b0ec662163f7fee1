"""Lets a command continue when its standard output or standard error fails.

Output to a pipe without a reader is dropped: `oku run | head -1` makes all of its requests, and ends as `oku
run` does. Other errors, such as a full disk, do not end the command either; they are reported when it has
ended. Characters that the encoding of a terminal lacks are replaced; see
docs/decisions/0066-what-a-terminal-cannot-show.md. No text is a command for a CI system that reads it.
"""

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from oku_cli.process.environment import find_terminal_encoding
from oku_cli.terminal.ci_commands import defuse, keep_line

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NAMES = {1: "standard output", 2: "standard error"}
_REPLACING = "oku.replacing"
"""The name of `_replace` as an error handler."""
_ALIKE = str.maketrans("·…µ━╍─▁▂▃▄▅▆█▉▊▋▌▍▎▏", "-.u=~-_.:-+#####::::")
"""ASCII for the characters that Oku and rich write themselves."""


class _Outlet(io.FileIO):
    """Writes without ever raising. `failure` is the first error that was not a closed pipe."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        self.failure: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write the data, or pretend to if that fails."""
        try:
            return super().write(data)
        except BrokenPipeError:
            pass
        except OSError as error:
            self.failure = self.failure or error
        return memoryview(data).nbytes


class _Text(io.TextIOWrapper):
    """Writes text in which nothing is a command for a CI system, including the text of libraries."""

    _line = ""

    def write(self, text: str, /) -> int:
        """Write text; a mark may have begun in the text before."""
        safe = defuse(text, self._line)
        self._line = keep_line(self._line + safe)
        return super().write(safe)


class StandardStreams:
    """Replaces `sys.stdout` and `sys.stderr`, even if they were closed at the start."""

    def __init__(self) -> None:
        for number in range(3):
            _open_unless_open(number)
        self._outlets = {number: _Outlet(number) for number in _NAMES}
        if sys.stdout in (sys.__stdout__, None):
            sys.stdout = _build_text(self._outlets[1], sys.stdout)
        if sys.stderr in (sys.__stderr__, None):
            sys.stderr = _build_text(self._outlets[2], sys.stderr)

    def find_failure(self) -> str:
        """Return why output with a reader was lost; empty if none was."""
        sys.stdout.flush()
        for number, outlet in self._outlets.items():
            if outlet.failure is not None:
                return f"{_NAMES[number]}: {outlet.failure.strerror}"
        return ""


def find_lost_output() -> str:
    """Return why standard output has lost something so far; empty if it has not."""
    sys.stdout.flush()
    failure = getattr(getattr(getattr(sys.stdout, "buffer", None), "raw", None), "failure", None)
    return f"{_NAMES[1]}: {failure.strerror}" if isinstance(failure, OSError) else ""


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Replace each character that an encoding lacks by one character, so that columns stay aligned."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end].translate(_ALIKE)
    return "".join(char if char.isascii() else "?" for char in missing), error.end


codecs.register_error(_REPLACING, _replace)


def _open_unless_open(number: int) -> None:
    # Otherwise a file that is opened later gets this number, and the output of the stream with it.
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


def _build_text(outlet: _Outlet, replaced: TextIO | None) -> TextIO:
    stream = replaced if isinstance(replaced, io.TextIOWrapper) else None
    return _Text(
        io.BufferedWriter(outlet),
        encoding=find_terminal_encoding() or (stream.encoding if stream else "utf-8"),
        errors=_REPLACING,
        line_buffering=stream is not None and (stream.line_buffering or stream.write_through),
    )
