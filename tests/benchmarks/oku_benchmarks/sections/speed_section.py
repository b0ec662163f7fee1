"""The section of the benchmark `speed`: this checkout beside an older one, in the same rounds."""

from oku_benchmarks.cases.speed import BEFORE, ENGINES, NOW, WRK, Results, Round, pick
from oku_benchmarks.measuring.spread import Spread, build_ratios, build_spread
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text

_NOISE = 0.05
_TEXT = """\
One worker of this checkout, one of commit 9096cef, whose leases were told of at their ends, and wrk take
turns at nginx, {turn_s} s each; who begins changes from round to round. Leases that report as they go must
cost a request nothing: the ratio of the processor time is that of now to before, round by round.

{table}
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    cases = [
        (engine, connections)
        for engine in ENGINES
        for connections in sorted({entry.connections for entry in results.rounds})
    ]
    header = ["engine", "connections", "before", "now", "wrk", "µs before", "µs now", "ratio of µs"]
    return Section(
        title="As fast as before",
        text=fill_text(
            _TEXT,
            turn_s=results.turn_s,
            table=build_table(header, [_build_row(results, *case) for case in cases]),
        ),
        goals=[_build_goal(results, *case) for case in cases],
        packages=("httptools", "aiohttp", "uvloop", "nginx", "wrk"),
    )


def _build_row(results: Results, engine: str, connections: int) -> list[str]:
    before, now = (pick(results, name, engine, connections) for name in (BEFORE, NOW))
    wrk = pick(results, WRK, "", connections)
    return [
        engine,
        f"{connections:,}",
        *(f"{_spread_rates(rounds).format()}/s" if rounds else NONE for rounds in (before, now, wrk)),
        *(build_spread(entry.cpu_us for entry in rounds).format(".1f") for rounds in (before, now)),
        _build_ratio(results, engine, connections).format(".3f"),
    ]


def _build_goal(results: Results, engine: str, connections: int) -> Goal:
    ratio = _build_ratio(results, engine, connections)
    return Goal(
        text=f"{engine}, {connections:,} connections: a request costs no more processor time than at commit"
        f" 9096cef, but for {_NOISE:.0%} of noise",
        result=f"{ratio.format('.3f')}",
        is_met=ratio.median <= 1 + _NOISE,
    )


def _build_ratio(results: Results, engine: str, connections: int) -> Spread:
    now, before = (
        [entry.cpu_us for entry in pick(results, name, engine, connections)] for name in (NOW, BEFORE)
    )
    return build_ratios(now, before)


def _spread_rates(rounds: list[Round]) -> Spread:
    return build_spread(entry.rate_rps for entry in rounds)
