"""Names the few styles that Oku uses in a terminal, by meaning.

They use only the terminal's own foreground and its basic colours, never a background and never dim, so that
they are readable on dark and light terminals. No meaning is carried by colour alone.
"""

from collections.abc import Mapping

from rich.text import Text

from oku_core.accounting.run_state import RunState
from oku_core.summary.judgement import Judgement

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

JUDGEMENT_STYLES: Mapping[Judgement, str] = {
    Judgement.GOOD: f"bold {GOOD}",
    Judgement.NEUTRAL: STRONG,
    Judgement.CAUTION: f"bold {CAUTION}",
    Judgement.BAD: BAD,
}
"""The style of the state of a run, by what is to be thought of it."""


def build_state(state: RunState, judgement: Judgement, ok: str = "") -> Text:
    """Build the state of a run in its colour, with the share that was ok, where that is known."""
    return Text(" · ".join(filter(None, (state.value, ok))), style=JUDGEMENT_STYLES[judgement])
