"""The section of the benchmark `connections`: memory of a worker for each connection in flight."""

from oku_benchmarks.cases.connections import BASE, DELAY, Results, measure_cost_kb
from oku_benchmarks.measuring.spread import build_spread
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text

_GOAL_KB = 4
_TEXT = """\
One worker of `oku run --engine httptools` at one process of `oku server --delay {delay}`, with more and more
requests in flight, {rounds} rounds in turn. Its memory is resident memory (VmRSS), the median over the time
in which all are in flight; what one connection costs is its difference to that of the run with
{base:,} in flight of the same round, divided by the difference in connections. kB are 10³ bytes.

{table}

What the kernel keeps for a socket is not the process's memory, and not in these figures.
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    sizes = sorted({entry.in_flight for entry in results.rounds})
    return Section(
        title="Memory of a connection",
        text=fill_text(
            _TEXT,
            delay=DELAY,
            base=BASE,
            rounds=max(entry.number for entry in results.rounds),
            table=build_table(
                ["in flight", "worker", "peak", "each beyond the base"],
                [_build_row(results, size) for size in sizes],
            ),
        ),
        goals=[_build_goal(results, size) for size in sizes if size != BASE],
        packages=("httptools", "uvloop", "celery"),
    )


def _build_row(results: Results, in_flight: int) -> list[str]:
    rounds = [entry for entry in results.rounds if entry.in_flight == in_flight]
    cost = NONE if in_flight == BASE else f"{measure_cost_kb(results.rounds, in_flight).format('.2f')} kB"
    return [
        f"{in_flight:,}",
        f"{build_spread(entry.worker_mb for entry in rounds).format('.1f')} MB",
        f"{build_spread(entry.peak_mb for entry in rounds).format('.1f')} MB",
        cost,
    ]


def _build_goal(results: Results, in_flight: int) -> Goal:
    cost_kb = measure_cost_kb(results.rounds, in_flight)
    return Goal(
        text=f"memory of a connection, {in_flight:,} in flight: at most {_GOAL_KB} kB",
        result=f"{cost_kb.format('.2f')} kB",
        is_met=cost_kb.median <= _GOAL_KB,
    )
