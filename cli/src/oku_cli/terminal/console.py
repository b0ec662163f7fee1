"""Provides the console that all views write to, and the few styles that they use, by meaning.

The console shows foreign text and never obeys it. Styles use only the terminal's own foreground and its basic
colours, never a background and never dim, so that they are readable on dark and light terminals. No meaning
is carried by colour alone.
"""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType  # noqa: TID251  # what others are to use
from rich.segment import Segment
from rich.text import Text

from oku_cli.terminal.printable import UNPRINTABLE, make_printable

STRONG = "bold"
"""Marks a number that the reader looks for."""
GOOD = "green"
"""Marks good values."""
CAUTION = "magenta"
"""Marks values that deserve attention. Yellow is unreadable on white."""
BAD = "bold red"
"""Marks bad values."""
ACCENT = "cyan"
"""Colours bars and lines that only draw a shape, never text."""
MOST_COLUMNS = 100
"""A wider terminal stays empty on the right: longer lines are hard to follow."""


class Terminal(Console):
    """Writes as a rich console does, but reads no markup or emoji in text and shows control characters.

    A text is one line unless the terminal is too narrow for it; two lines are two texts.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def print_line(self, line: str) -> None:
        """Write a line that only the terminal wraps, so that a link or a command in it stays whole."""
        self.print(line, soft_wrap=True)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does; each text passes through here, alone or in a table."""
        if isinstance(renderable, str):
            renderable = self.render_str(renderable)
        if isinstance(renderable, Text) and UNPRINTABLE.search(renderable.plain):
            renderable = renderable.copy()
            renderable.plain = make_printable(renderable.plain)  # one for one, so that styles stay in place
        return super().render(renderable, options)
