"""Draws docs/images/run.svg and docs/images/summary.svg from a real run; `./task docs:screens` calls it.

It starts the local stack of `oku run` for a run of a minute and kills a worker (`kill -9`) in the middle. The
code that draws the live view and the end screen for users draws both pictures.
"""

import asyncio
import io
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from oku_cli.backends.client import Client
from oku_cli.backends.data_dir import DataDir
from oku_cli.follow.run_start import RunStart
from oku_cli.live.live_view import SeenTick, build_frame
from oku_cli.live.trend import TrendTracker
from oku_cli.local.local_run import build_stack_plan
from oku_cli.local.stack import LocalStack
from oku_cli.terminal.console import ACCENT, Terminal
from oku_cli.views.summary_view import build_screen
from oku_core.accounting.run_state import RunState
from oku_core.spec.fields import FIELD_BY_KEY
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec
from oku_core.summary.summary import Summary

_IMAGES = Path(__file__).parents[1] / "images"

_FLAGS = {"requests": "150k", "workers": "2", "delay": "lognormal:40ms,0.5", "name": "demo"}
_VICTIM = "worker-2"
_KILL_AFTER_S = 18.0
_SHOW_AFTER_S = 26.0
"""Both in seconds of activity; the run is still going on then."""

_COLUMNS = 90
_THEME = TerminalTheme(
    (22, 27, 34),
    (201, 209, 217),
    [
        (72, 79, 88), (248, 113, 103), (87, 195, 106), (210, 153, 34),
        (88, 166, 255), (205, 144, 240), (86, 200, 216), (201, 209, 217),
    ],
)  # fmt: skip
_FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<!-- Made by docs/tools/screens.py from a real run. -->
<style>
.{unique_id}-matrix {{
  font-family: Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: ui-sans-serif, system-ui, sans-serif; font-size: 16px; opacity: 0.6; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own format, without the fonts that it loads from elsewhere, and with spaces kept."""
_ASPECT = 0.602
"""Width of a character of these fonts, divided by its height."""


class Recording:
    """What is seen of one run: the lines above the live view, the tick to show, the summary."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.title = ""
        self.shown: SeenTick | None = None
        self.summary: Summary | None = None

    def log(self, line: str) -> None:
        """Keep a line that the stack printed."""
        self.lines.append(line)


async def record_run(spec: Spec, start: RunStart, folder: Path) -> Recording:
    """Carry out a run on a local stack in `folder`, kill a worker on the way, and record what was seen."""
    recording = Recording()
    data_dir = DataDir(folder)
    data_dir.hold()
    stack = LocalStack(data_dir, build_stack_plan(spec), recording.log)
    try:
        await stack.start()
        async with Client(stack.endpoint) as client:
            begun = await start.send(client)
            recording.title = start.build_title(begun)
            await stack.guard(_follow(client, begun.run, data_dir, recording))
    finally:
        await stack.end()
        data_dir.release()
    return recording


async def _follow(client: Client, run: str, data_dir: DataDir, recording: Recording) -> None:
    tracker = TrendTracker()
    is_killed = False
    async for item in client.follow(run):
        if isinstance(item, Summary):
            recording.summary = item
            return
        sample = SeenTick(tick=item, trend=tracker.add(item), seen_at_s=time.monotonic())
        if item.state == RunState.RUNNING and item.sample.active_s < _SHOW_AFTER_S:
            recording.shown = sample
        if item.sample.active_s > _KILL_AFTER_S and not is_killed:
            is_killed = True
            os.kill(json.loads(data_dir.stack_file.read_text())["children"][_VICTIM], signal.SIGKILL)


def draw(name: str, *parts: RenderableType) -> Path:
    """Write what a terminal shows of `parts` into an image of that name."""
    console = Terminal(
        file=io.StringIO(), record=True, width=_COLUMNS, force_terminal=True,
        color_system="standard", legacy_windows=False,
    )  # fmt: skip
    for part in parts:
        console.print(part)
    svg = console.export_svg(
        title="oku", theme=_THEME, code_format=_FORMAT, font_aspect_ratio=_ASPECT, unique_id=f"oku-{name}"
    )
    # In a wider or narrower font, bars would have gaps.
    svg = svg.replace("textLength=", 'lengthAdjust="spacingAndGlyphs" textLength=')
    image = _IMAGES / f"{name}.svg"
    image.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")
    return image


def build_prompt() -> Text:
    """The command line that does the same, except for the `kill -9`, in the shortest flags."""
    names = {key: next(iter(FIELD_BY_KEY[key].short), f"--{key}") for key in _FLAGS}
    flags = " ".join(f"{names[key]} {value}" for key, value in _FLAGS.items())
    return Text.assemble(("$ ", ACCENT), f"oku run {flags}")


def main() -> int:
    """Carry out the run, draw it, say where the images are, and return the exit code."""
    spec = parse_spec(Source(None, _FLAGS))
    start = RunStart.submit(spec)
    with tempfile.TemporaryDirectory() as folder:
        recording = asyncio.run(record_run(spec, start, Path(folder)))
    shown, summary = recording.shown, recording.summary
    if shown is None or summary is None or summary.state != RunState.COMPLETED:
        sys.stderr.write("the run did not complete: nothing was drawn\n")
        return 1
    _IMAGES.mkdir(exist_ok=True)
    head = [build_prompt(), *map(Text, recording.lines)]
    frame = build_frame(recording.title, shown, shown.seen_at_s)
    images = [
        draw("run", Padding(Group(*head), (0, 1)), frame, ""),
        draw("summary", build_screen(summary)),
    ]
    for image in images:
        sys.stdout.write(f"wrote {image.relative_to(_IMAGES.parents[1])}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
