"""The few styles that Oku uses in a terminal, by meaning.

Only the terminal's own foreground and its basic colours, never a background, never dim: what these carry
can be read on a dark and on a light terminal, and none of them is the only carrier of a meaning.
"""

from collections.abc import Mapping

from oku_core.accounting.run_state import RunState

STRONG = "bold"
"""A number that one looks for."""
GOOD = "green"
"""As it should be."""
CAUTION = "magenta"
"""To be looked at. Not yellow: nobody reads that on white."""
BAD = "bold red"
"""Wrong."""
ACCENT = "cyan"
"""Bars and lines that only draw a shape; no text."""

MOST_COLUMNS = 100
"""A wider terminal is left empty to the right: eyes find no line again over more."""

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
"""How each state is shown."""
