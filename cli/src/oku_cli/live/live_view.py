"""Shows ticks in an area at the foot of a terminal, and log lines above it.

Taking in a tick only replaces a reference. A thread draws twice a second, so that a terminal that does not
take its output holds nobody up. In the end the area disappears and the lines above it stay.
"""

import time

from rich.console import RenderableType
from rich.live import Live

from oku_cli.live.frame import SeenTick, build_frame
from oku_cli.live.trend import TrendTracker
from oku_cli.terminal.console import Terminal
from oku_core.process.clock import Clock
from oku_core.summary.tick import Tick

REDRAWS_PER_S = 2
"""Ticks come once a second; drawing more often would only take time from local workers."""


class LiveView:
    """Shows the newest tick in place.

    Args:
        console: the terminal to draw on.
        clock: monotonic time in seconds, to notice that no ticks come.
        redraws_itself: whether a thread redraws twice a second; otherwise only `redraw` does.
    """

    def __init__(
        self,
        console: Terminal,
        clock: Clock = time.monotonic,
        *,
        redraws_itself: bool = True,
    ) -> None:
        self._console = console
        self._clock = clock
        self._trend = TrendTracker()
        self._title = ""
        self._seen: SeenTick | None = None
        self._live = Live(
            console=console,
            get_renderable=self._build,
            auto_refresh=redraws_itself,
            refresh_per_second=REDRAWS_PER_S,
            redirect_stdout=False,  # JSON may go there
            transient=True,
        )

    def start(self, title: str) -> None:
        """Begin to draw."""
        self._title = title
        self._live.start(refresh=True)

    def redraw(self) -> None:
        """Draw the newest tick now."""
        self._live.refresh()

    def show_tick(self, tick: Tick) -> None:
        """Draw this tick from now on."""
        self._seen = SeenTick(tick=tick, trend=self._trend.add(tick), seen_at_s=self._clock())

    def log(self, line: str) -> None:
        """Write a line above what is drawn."""
        self._console.print_line(line)

    def warn(self, line: str) -> None:
        """Write a line above what is drawn."""
        self.log(line)

    def stop(self) -> None:
        """Remove what was drawn."""
        self._live.stop()

    def _build(self) -> RenderableType:
        return build_frame(self._title, self._seen, self._clock())
