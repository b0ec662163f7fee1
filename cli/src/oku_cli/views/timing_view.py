"""Shows how the time of the requests of a run is split, where that tells more than their latency does."""

from rich.text import Text

from oku_cli.terminal.layout import Flow
from oku_cli.terminal.palette import STRONG
from oku_core.results.summary import Summary
from oku_core.results.timing_summary import StepSummary
from oku_core.tables.formatting import format_count, format_latency

STEP_NAMES = {"connect": "connect", "tls": "TLS", "first_byte": "first byte", "transfer": "transfer"}
"""The steps as they are called where people read."""
_FEW_CONNECTIONS = 0.01


def build_timing(summary: Summary) -> Flow | None:
    """Show the median and the 99th percentile of each step; None if there is nothing to tell.

    Making connections is shown where one was made for more than a hundredth of the requests, or with TLS;
    first byte and transfer where more than a hundredth of the answers came in several pieces.
    """
    timing = summary.timing_ms
    shown: list[str] = []
    if timing.tls.requests or timing.connect.requests > _FEW_CONNECTIONS * summary.accounted:
        shown += ["connect", "tls"]
    if timing.transfer.p99:
        shown += ["first_byte", "transfer"]
    steps = [(name, step) for name, step in timing.list_steps() if name in shown and step.requests]
    return Flow(*(_phrase(name, step) for name, step in steps), gap=3) if steps else None


def format_step(time_ms: float | None) -> str:
    """Format the time of a step; the transfer of most answers takes none."""
    return "0 ms" if time_ms == 0 else format_latency(time_ms)


def _phrase(name: str, step: StepSummary) -> Text:
    phrase = Text(f"{STEP_NAMES[name]} p50 ")
    phrase.append(format_step(step.p50), style=STRONG)
    phrase.append(" p99 ")
    phrase.append(format_step(step.p99), style=STRONG)
    if name in ("connect", "tls"):
        phrase.append(f" ({format_count(step.requests)})")
    return phrase
