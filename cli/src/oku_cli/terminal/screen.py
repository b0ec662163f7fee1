"""What a user sees during a run: ticks and log lines go in, one of three views shows them.

`LiveView` redraws an area of a terminal, `PlainView` writes lines to a file or a pipe, `QuietView` says on
standard error what is wrong, and nothing else. The others write to the console they are given only, so that
standard output stays free for JSON.
"""

from typing import Protocol

from oku_cli.terminal.console import Terminal
from oku_cli.terminal.live import LiveView
from oku_cli.terminal.plain import PlainView
from oku_cli.terminal.printable import write_error
from oku_core.results.tick import Tick


class View(Protocol):
    """Shows a run in progress. No call waits for anything but the console."""

    def start(self, title: str) -> None:
        """Start to show the run with this title."""

    def show_tick(self, tick: Tick) -> None:
        """Take in the newest second."""

    def log(self, line: str) -> None:
        """Say what happened: `worker-1 died (signal 9), started again`."""

    def warn(self, line: str) -> None:
        """Report a problem that does not fix itself, even when progress is not shown."""

    def stop(self) -> None:
        """End; the console is as it was. May be called twice."""


class QuietView:
    """Shows no progress."""

    def start(self, title: str) -> None:
        """Show nothing."""

    def show_tick(self, tick: Tick) -> None:
        """Show nothing."""

    def log(self, line: str) -> None:
        """Show nothing."""

    def warn(self, line: str) -> None:
        """Write it to standard error, for whoever reads the log of a job."""
        write_error(line)

    def stop(self) -> None:
        """Show nothing."""


def build_view(console: Terminal, *, quiet: bool = False) -> View:
    """The view that suits the console: live on a terminal that can move its cursor, else plain."""
    if quiet:
        return QuietView()
    return LiveView(console) if console.is_interactive else PlainView(console)
