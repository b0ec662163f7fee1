"""Names the few styles that Oku uses in a terminal, by meaning.

They use only the terminal's own foreground and its basic colours, never a background and never dim, so that
they are readable on dark and light terminals. No meaning is carried by colour alone.
"""

from collections.abc import Mapping

from oku_core.accounting.run_state import RunState

STRONG = "bold"
"""Marks a number that the reader looks for."""
GOOD = "green"
"""Marks what is as it should be."""
CAUTION = "magenta"
"""Marks what deserves a look. Yellow is unreadable on white."""
BAD = "bold red"
"""Marks what is wrong."""
ACCENT = "cyan"
"""Colours bars and lines that only draw a shape, never text."""

MOST_COLUMNS = 100
"""A wider terminal stays empty on the right: longer lines are hard to follow."""

STATE_STYLES: Mapping[RunState, str] = {
    RunState.PENDING: CAUTION,
    RunState.RUNNING: f"bold {GOOD}",
    RunState.PAUSING: f"bold {CAUTION}",
    RunState.PAUSED: f"bold {CAUTION}",
    RunState.COMPLETED: f"bold {GOOD}",
    RunState.CANCELLING: f"bold {CAUTION}",
    RunState.CANCELLED: f"bold {CAUTION}",
    RunState.FAILED: BAD,
}
"""The style of each state."""
