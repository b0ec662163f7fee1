"""Builds the tables of the parts of a run: its phases, its targets, and requests of user code by name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import msgspec

from oku_core.accounting.outcome import OK, count_sent
from oku_core.schedule.stage import Stage
from oku_core.spec.load import WARM_UP, list_stages
from oku_core.spec.spec import Spec
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.request_summary import InnerSummary, PhaseSummary, TargetSummary, measure_rate
from oku_core.summary.summary import Summary
from oku_core.summary.tick import TargetTick, Tick
from oku_core.tables.formatting import (
    format_compact,
    format_count,
    format_latency,
    format_share,
    format_since,
)
from oku_core.tables.outcome_tables import build_outcome_bar, describe_troubles
from oku_core.tables.table import (
    Cell,
    Column,
    Quantity,
    Rank,
    Role,
    Table,
    Value,
    build_table,
    judge_failures,
    judge_share,
)
from oku_core.tables.time_tables import TIMES, ShownTime, build_time_columns, list_figures, list_times

MOST_ROWS = 12
"""Up to this many targets have a row each on a terminal."""
NAMES_TITLE = "Requests by name"
NAMES_NOTE = "They stand beside the account: an iteration that is made again makes its requests again."
_WARM_UP_NOTE = "Requests and outcomes include the warm-up; rates and times do not."
_FIGURES: Mapping[str, Rank] = {"p50": Rank.USEFUL, "p95": Rank.SPARE, "p99": Rank.ESSENTIAL}
_LIVE_FIGURES: Mapping[str, Rank] = {"p50": Rank.USEFUL, "p99": Rank.ESSENTIAL}
_PHASE_FIGURES = {"p50": Rank.SPARE, "p99": Rank.ESSENTIAL}


class _Figures(NamedTuple):
    """The figures of a target, or of the requests of one name; its latencies are the first of its times.

    The rate is of those that were sent and have ended. The size is None if it is not known.
    """

    name: str
    requests: int
    ok: int
    rate_rps: float
    times_ms: Sequence[LatencySummary]
    size: int | None = None
    detail: str = ""
    bar: Cell = Cell()

    @property
    def badness(self) -> tuple[float, float]:
        """Orders targets from the best to the worst: by the share that was not ok, then by the latency."""
        failed = (self.requests - self.ok) / self.requests if self.requests else 0.0
        return failed, self.times_ms[0].p99 or 0.0


def build_targets(summary: Summary, *, most: int | None = None) -> Table:
    """Build the table of targets in the order of the spec; of more than `most`, the worst and a sum."""
    has_warm_up = any(phase.name == WARM_UP for phase in summary.phases)
    table = _build_targets(summary.targets, most)
    return msgspec.structs.replace(table, title="Targets", note=_WARM_UP_NOTE if has_warm_up else "")


def build_phase_targets(phase: PhaseSummary) -> Table:
    """Build the table of targets in one phase."""
    return msgspec.structs.replace(_build_targets(phase.targets, None), title=f"Phase {phase.name}")


def build_names(requests: Sequence[InnerSummary], *, most: int | None = None) -> Table:
    """Build the table of the requests of user code by name; of more than `most`, the worst and a sum."""
    whole = max((each.requests for each in requests), default=0)
    rows = [
        _measure(inner, whole, [inner.latency_ms], _describe_statuses(inner.statuses)) for inner in requests
    ]
    table = _build_table("name", rows, TIMES[:1], _FIGURES, most)
    return msgspec.structs.replace(table, title=NAMES_TITLE, note=NAMES_NOTE)


def build_live_targets(tick: Tick, *, most: int = MOST_ROWS) -> Table:
    """Build the table of counts so far: by target, or by name of requests of user code."""
    key = "target" if tick.targets else "name"
    return _build_table(key, _list_live(tick), TIMES[:1], _LIVE_FIGURES, most)


def describe_worst_target(tick: Tick) -> Iterator[str]:
    """Describe the target with the smallest share that is ok, or of equal ones the slowest, within a line."""
    if rows := [row for row in _list_live(tick) if row.requests]:
        worst = max(rows, key=lambda row: row.badness)
        ok = format_share(worst.ok, worst.requests)
        what = "target" if tick.targets else "request"
        yield f"worst {what} {worst.name} ok {ok} p99 {format_latency(worst.times_ms[0].p99)}"


def _build_targets(targets: Sequence[TargetSummary], most: int | None) -> Table:
    times = list_times(targets)
    whole = max((target.requests for target in targets), default=0)
    rows = [
        _measure(target, whole, [time.pick(target) for time in times], describe_troubles(target.outcomes))
        for target in targets
    ]
    return _build_table("target", rows, times, _FIGURES, most)


def _measure(
    part: TargetSummary | InnerSummary, whole: int, times_ms: Sequence[LatencySummary], detail: str
) -> _Figures:
    bar = build_outcome_bar(part.outcomes, whole)
    ok, size = part.outcomes.ok, part.bytes_received
    return _Figures(part.name, part.requests, ok, part.rate_rps, times_ms, size, detail, bar)


def _list_live(tick: Tick) -> list[_Figures]:
    return [_measure_live(each, tick.sample.active_s) for each in tick.targets or tick.inner_requests]


def _measure_live(target: TargetTick, active_s: float) -> _Figures:
    rate_rps = measure_rate(count_sent(target.outcomes), active_s)
    latency_ms = LatencySummary(p50=target.p50_ms, p99=target.p99_ms)
    return _Figures(target.name, sum(target.outcomes), target.outcomes[OK], rate_rps, [latency_ms])


def _build_table(
    key: str,
    rows: Sequence[_Figures],
    times: Sequence[ShownTime],
    figures: Mapping[str, Rank],
    most: int | None,
) -> Table:
    has_sizes = any(row.size is not None for row in rows)
    columns = [
        Column(key=key, head=key, role=Role.NAME),
        Column(key="requests", head="requests", quantity=Quantity.COUNT),
        Column(key="bar", head="", role=Role.BAR),
        Column(key="ok", head="ok", quantity=Quantity.SHARE),
        Column(key="failed", head="failed", quantity=Quantity.COUNT, rank=Rank.USEFUL),
        Column(key="rate", head="rate", quantity=Quantity.RATE, rank=Rank.USEFUL),
        *build_time_columns(times, figures),
    ]
    if has_sizes:
        columns.append(Column(key="bytes", head="bytes", quantity=Quantity.SIZE, rank=Rank.SPARE))
    shown, others = _choose_rows(rows, most)
    cells = [_list_cells(row, figures, has_sizes=has_sizes) for row in shown]
    if others:
        sums = _list_counts(_add_up(others))
        cells.append([*sums, *[Cell()] * (len(columns) - len(sums))])
    return build_table(f"{key}s", "", columns, cells)


def _list_cells(row: _Figures, figures: Iterable[str], *, has_sizes: bool) -> list[Value]:
    times_ms = [getattr(time_ms, figure) for time_ms in row.times_ms for figure in figures]
    return [*_list_counts(row), *times_ms, *([row.size] if has_sizes else [])]


def _list_counts(row: _Figures) -> list[Value]:
    return [
        Cell(text=row.name, detail=row.detail),
        row.requests,
        row.bar,
        judge_share(row.ok, row.requests),
        judge_failures(row.requests - row.ok),
        row.rate_rps,
    ]


def _choose_rows(rows: Sequence[_Figures], most: int | None) -> tuple[Sequence[_Figures], Sequence[_Figures]]:
    """All rows in their order, and none; or the worst ones, the worst first, and those that are left out."""
    if most is None or len(rows) <= most:
        return rows, ()
    ranked = sorted(rows, key=lambda row: row.badness, reverse=True)
    return ranked[: most - 1], ranked[most - 1 :]


def _add_up(rows: Sequence[_Figures]) -> _Figures:
    return _Figures(
        f"and {format_count(len(rows))} more",
        sum(row.requests for row in rows),
        sum(row.ok for row in rows),
        sum(row.rate_rps for row in rows),
        (),
    )


def _describe_statuses(statuses: Mapping[str, int]) -> str:
    return ", ".join(f"{status}: {format_count(count)}" for status, count in statuses.items())


def build_phases(summary: Summary, load: Spec | None = None) -> Table:
    """Build the table; it has no rows if the run has only one phase, without a name.

    The load has the number of requests that a stage of a closed run keeps in flight.
    """
    phases = summary.phases
    is_open = any(phase.due is not None for phase in phases)
    levels = {} if is_open or load is None else _describe_levels(load)
    times = list_times(phases)
    columns = [
        Column(key="phase", head="phase", role=Role.NAME),
        Column(key="time", head="time", role=Role.TEXT, quantity=Quantity.DURATION, rank=Rank.DETAIL),
        *([Column(key="due", head="due", quantity=Quantity.COUNT)] if is_open else []),
        Column(key="completed", head="completed", quantity=Quantity.COUNT),
        Column(key="ok", head="ok", quantity=Quantity.SHARE),
        *_list_planned(has_levels=bool(levels), is_open=is_open),
        Column(key="sent_rps", head="sent/s", quantity=Quantity.RATE),
        Column(key="completed_rps", head="completed/s", quantity=Quantity.RATE),
        *build_time_columns(times, _PHASE_FIGURES),
    ]
    rows: Iterator[list[Value]] = (
        [
            Cell(text=phase.name, detail=describe_troubles(phase.outcomes)),
            Cell(text=_describe_time(phase), value=phase.begin_s),
            *([phase.due] if is_open else []),
            phase.completed,
            judge_share(phase.outcomes.ok, sum(msgspec.structs.astuple(phase.outcomes))),
            *_list_plan(phase, levels, is_open=is_open),
            *(_list_rates(phase) if summary.active_s > phase.begin_s else (None, None)),
            *list_figures(phase, times, _PHASE_FIGURES),
        ]
        for phase in phases
    )
    return build_table("phases", "Phases", columns, rows)


def _list_planned(*, has_levels: bool, is_open: bool) -> Iterator[Column]:
    if is_open:
        yield Column(key="planned_rps", head="planned/s", quantity=Quantity.RATE)
    elif has_levels:
        yield Column(key="planned", head="planned", role=Role.TEXT, rank=Rank.SPARE)


def _list_plan(phase: PhaseSummary, levels: Mapping[str, str], *, is_open: bool) -> Iterator[Value]:
    if is_open:
        yield phase.planned_rps
    elif levels:
        yield levels.get(phase.name, "")


def _list_rates(phase: PhaseSummary) -> tuple[float, float]:
    return phase.sent_rps, phase.completed_rps


def _describe_time(phase: PhaseSummary) -> str:
    end = "the end" if phase.end_s is None else format_since(phase.end_s)
    return f"{format_since(phase.begin_s)} to {end}"


def _describe_levels(load: Spec) -> dict[str, str]:
    """How many requests each stage keeps in flight: `0 to 50 in flight`."""
    groups = groupby(list_stages(load), attrgetter("name"))
    return {name: _describe_concurrency(list(stages)) for name, stages in groups}


def _describe_concurrency(stages: Sequence[Stage]) -> str:
    levels = [stages[0].begin, *(stage.end for stage in stages)]
    ends = [level for level, _ in groupby(levels)]
    return f"{' to '.join(format_compact(float(level)) for level in ends)} in flight"
