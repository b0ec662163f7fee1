"""Chooses the view that shows the ticks and log lines of a run.

`LiveView` redraws an area of a terminal, `PlainView` writes lines to a file or a pipe, and `QuietView` only
reports problems on standard error. The first two write only to their console, so that standard output stays
free for JSON.
"""

from typing import Protocol

from oku_cli.live.live_view import LiveView
from oku_cli.live.plain import PlainView
from oku_cli.terminal.console import Terminal
from oku_cli.terminal.printable import write_error
from oku_core.summary.tick import Tick


class View(Protocol):
    """Shows a run in progress; no call waits for anything but the console."""

    def start(self, title: str) -> None:
        """Start to show the run under this title."""

    def show_tick(self, tick: Tick) -> None:
        """Show the newest tick."""

    def log(self, line: str) -> None:
        """Show what happened: `worker-1 died (signal 9), started again`."""

    def warn(self, line: str) -> None:
        """Report a problem that does not fix itself, even when progress is not shown."""

    def stop(self) -> None:
        """Leave the console as it was. A second call does nothing."""


class QuietView:
    """Shows no progress."""

    def start(self, title: str) -> None:
        """Show nothing."""

    def show_tick(self, tick: Tick) -> None:
        """Show nothing."""

    def log(self, line: str) -> None:
        """Show nothing."""

    def warn(self, line: str) -> None:
        """Write the line to standard error, for whoever reads the log of a job."""
        write_error(line)

    def stop(self) -> None:
        """Show nothing."""


def build_view(console: Terminal, *, quiet: bool = False) -> View:
    """Build the view that suits the console: live on a terminal that can move its cursor, otherwise plain."""
    if quiet:
        return QuietView()
    return LiveView(console) if console.is_interactive else PlainView(console)
