"""Shows what user code prints: its first lines as they come, and at the end where the rest is."""

from typing import TYPE_CHECKING

from oku_core.messaging.printed import PrintedSummary
from oku_core.tables.formatting import format_count

if TYPE_CHECKING:
    from oku_cli.live.plain import View

_MOST_FILES = 3


class PrintedView:
    """Shows each line once, in the view of a run that is followed."""

    def __init__(self, view: "View") -> None:
        self._view = view
        self._shown = 0

    def show(self, printed: PrintedSummary | None) -> None:
        """Show the lines that are new."""
        if printed is None:
            return
        for line in printed.lines[self._shown :]:
            self._view.print_line(f"{line.worker}: {line.text}")
        self._shown = max(self._shown, len(printed.lines))

    def show_rest(self, printed: PrintedSummary | None) -> None:
        """Show how many more lines there are, and where."""
        if printed is not None and printed.count > len(printed.lines):
            self._view.print_line(describe_rest(printed))


def describe_rest(printed: PrintedSummary) -> str:
    """Where the lines are that are not shown."""
    more = printed.count - len(printed.lines)
    places = [f"{path} ({worker})" for worker, path in sorted(printed.files.items())]
    others = f" and {len(places) - _MOST_FILES:,} more" if len(places) > _MOST_FILES else ""
    where = f": {', '.join(places[:_MOST_FILES])}{others}" if places else ""
    lines = "1 more line" if more == 1 else f"{format_count(more)} more lines"
    return f"user code printed {lines}{where}"
