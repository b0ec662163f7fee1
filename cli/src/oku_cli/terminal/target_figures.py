"""Shows what is counted of each target so far, or of requests of user code, while a run is under way."""

from collections.abc import Iterator

from rich.console import RenderableType

from oku_cli.terminal.target_table import TargetRow, TargetTable
from oku_core.accounting.outcome import OUTCOMES, Outcome, count_sent
from oku_core.results.rates import measure_rate
from oku_core.results.tick import TargetTick, Tick
from oku_core.tables.formatting import format_latency, format_share

_OK = OUTCOMES.index(Outcome.OK)
_HEADS = ("p50", "p99")


def build_live_targets(tick: Tick, *, most: int) -> RenderableType:
    """Show a row for each target, or the worst ones, with its mean rate since the run began.

    Args:
        tick: of a run with named targets, or of user code.
        most: how many rows there may be.
    """
    return TargetTable(list_rows(tick), _HEADS, most=most, what="target" if tick.targets else "name")


def list_rows(tick: Tick) -> list[TargetRow]:
    """The figures of each target, in the order of the spec, or of requests of user code by their names."""
    return [_build_row(each, tick.sample.active_s) for each in tick.targets or tick.inner_requests]


def describe_worst_target(tick: Tick) -> Iterator[str]:
    """The target with the smallest share that is ok, or of equal ones the slowest, as a part of a line."""
    if rows := [row for row in list_rows(tick) if row.requests]:
        worst = max(rows, key=lambda row: row.badness)
        ok = format_share(worst.ok, worst.requests)
        what = "target" if tick.targets else "request"
        yield f"worst {what} {worst.name} ok {ok} p99 {format_latency(worst.p99_ms)}"


def _build_row(target: TargetTick, active_s: float) -> TargetRow:
    return TargetRow(
        name=target.name,
        requests=sum(target.outcomes),
        ok=target.outcomes[_OK],
        rate_rps=measure_rate(count_sent(target.outcomes), active_s),
        times_ms=(target.p50_ms, target.p99_ms),
        p99_ms=target.p99_ms,
    )
