"""What may be wrong with a file of data, as one line that names the file and the line in it."""

from oku_core.errors import UserError


class DataError(UserError):
    """A file of data cannot be used; the message names the file and, where there is one, the line."""


class LineError(ValueError):
    """One line of a file is wrong.

    Attributes:
        line: its number in the block of lines that was looked at, from 0.
        reason: what is wrong with it, to stand behind the file and the number of the line.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
