"""The section of the benchmark `peers`: one Oku worker beside other load generators."""

from collections.abc import Iterator, Sequence

from oku_benchmarks.cases.peer_contest import OKU, OKU_AIOHTTP, compare, pick
from oku_benchmarks.cases.peers import Results
from oku_benchmarks.measuring.spread import build_spread
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text
from oku_benchmarks.turns.rivals import BARE_LOOP, H2LOAD, LOCUST, RIVALS, WRK

_WRK_GOAL = 0.9
_LOOP_GOAL = 0.9
_LOCUST_GOAL = 1.5
_AIOHTTP_GOAL = 18_000
_AIOHTTP_CONNECTIONS = 100
_TEXT = """\
One Oku worker of a real `oku run --engine httptools`, with its broker, coordinator, ledger and live view
(in a terminal of its own), and other load generators take turns: {rounds} rounds, {turn_s} s for each
turn, at one nginx process that answers `return 200` from memory. That answer is the same for all, byte for
byte but for `Date`; answers that vary have a section of their own. `oku, aiohttp` is the same with the other
engine. The bare loop is forty lines of aiohttp
(`tests/benchmarks/oku_benchmarks/contestants/bare_loop.py`), Locust runs a `FastHttpUser` without waiting.

Requests are counted by nginx (`stub_status`), for all alike, and the rate is that between 20 % and 90 % of
a turn's own requests: starting up, opening connections and winding down are in none of them. Processor time
is that of the client's process with all its threads, in the same window. The figures are medians over the
rounds, in brackets the smallest and the largest; ratios are taken round by round.

Nothing is pinned to a core: client, nginx and, for Oku, broker, coordinator and live view share {cores}
cores as the kernel has it, and what looks on takes its part from all of them alike. That costs Oku a little,
who brings more processes. wrk and h2load have one thread (`-t1`), as an Oku worker has one event loop; what
has threads of its own is run twice, held to one processor (`GOMAXPROCS=1`, `TOKIO_WORKER_THREADS=1`) and as
it comes, when it may use all cores. wrk, h2load, oha, hey, vegeta and k6 ask for one URL again and again;
Oku, Locust and the loop ask for another one each time, with the index in its path.

{tables}{reasons}
{missing}"""
_BEHIND = """
With {connections:,} connections Oku sends {ratio:.0%} of what {name} sends: a request costs it {cost:.2f}
times the processor time, and its worker gets {share:.2f} of a core where {name} gets {other_share:.2f}: there
are more processes that want to run on {cores} cores, and nginx is more often woken on the worker's. Where its
processor time goes is in [a section below](#processor-time-of-a-request-and-where-it-goes).
"""
_SLOW_LOOP = """
The engine `aiohttp` does not reach {goal:,} requests for a second of processor time on this processor
because aiohttp does not: the bare loop, which does nothing beside, makes {loop:,.0f} in the same rounds.
"""


def build_section(results: Results, cores: int) -> Section:
    """Everything of the benchmark."""
    connections = sorted({entry.connections for entry in results.rounds})
    names = [name for name in (OKU, *RIVALS, OKU_AIOHTTP) if name not in results.missing]
    reasons = sorted(set(results.missing.values()))
    missing = f"\nLeft out: {'; '.join(reasons)}.\n" if reasons else ""
    return Section(
        title="One worker beside other load generators",
        text=fill_text(
            _TEXT,
            rounds=max(entry.number for entry in results.rounds),
            turn_s=results.turn_s,
            cores=cores,
            tables="\n\n".join(_build_table(results, names, count) for count in connections),
            reasons="".join(
                f"\n\n{reason}"
                for count in connections
                for reason in _explain_missed(results, names, count, cores)
            ),
            missing=missing,
        ),
        goals=[goal for count in connections for goal in _build_goals(results, names, count)],
        packages=(
            "httptools", "aiohttp", "uvloop", "celery",
            "nginx", "wrk", "h2load", "oha", "hey", "k6", "vegeta", "locust", "gevent",
        ),
    )  # fmt: skip


def _build_table(results: Results, names: Sequence[str], connections: int) -> str:
    header = [
        f"{connections:,} connections", "requests/s", "Oku's rate to this", "µs of CPU each",
        "share of a core", "nginx's share",
    ]  # fmt: skip
    return build_table(header, [_build_row(results, name, connections) for name in names])


def _build_row(results: Results, name: str, connections: int) -> list[str]:
    def spread(attribute: str, pattern: str) -> str:
        return build_spread(pick(results.rounds, name, connections, attribute)).format(pattern)

    return [
        name,
        spread("rate_rps", ",.0f"),
        NONE if name == OKU else compare(results.rounds, OKU, name, connections, "rate_rps").format(".2f"),
        spread("cpu_us", ".1f"),
        spread("cpu_share", ".2f"),
        spread("target_share", ".2f"),
    ]


def _build_goals(results: Results, names: Sequence[str], connections: int) -> list[Goal]:
    goals = []
    for name in names:
        if name in (OKU, OKU_AIOHTTP):
            continue
        least = _WRK_GOAL if name == WRK else 1
        ratio = compare(results.rounds, OKU, name, connections, "rate_rps")
        text = f"at least {_WRK_GOAL:g} of that of {name}" if name == WRK else f"ahead of {name}"
        goals.append(
            Goal(
                text=f"rate, {connections:,} connections: {text}",
                result=ratio.format(".2f"),
                is_met=ratio.median >= least if name == WRK else ratio.median > least,
            )
        )
    return [*goals, *_build_aiohttp_goals(results, names, connections)]


def _build_aiohttp_goals(results: Results, names: Sequence[str], connections: int) -> list[Goal]:
    goals = []
    if BARE_LOOP in names:
        ratio = compare(results.rounds, BARE_LOOP, OKU_AIOHTTP, connections, "cpu_us")
        goals.append(
            Goal(
                text=f"engine aiohttp, requests per CPU second, {connections:,} connections: at least"
                f" {_LOOP_GOAL:g} of those of the bare loop",
                result=ratio.format(".2f"),
                is_met=ratio.median >= _LOOP_GOAL,
            )
        )
    if LOCUST in names:
        ratio = compare(results.rounds, OKU_AIOHTTP, LOCUST, connections, "rate_rps")
        goals.append(
            Goal(
                text=f"engine aiohttp, rate, {connections:,} connections: at least {_LOCUST_GOAL:g} times"
                " that of Locust",
                result=ratio.format(".2f"),
                is_met=ratio.median >= _LOCUST_GOAL,
            )
        )
    if connections == _AIOHTTP_CONNECTIONS:
        per_cpu_s = build_spread(
            1e6 / cpu for cpu in pick(results.rounds, OKU_AIOHTTP, connections, "cpu_us")
        )
        goals.append(
            Goal(
                text=f"engine aiohttp, {connections:,} connections: at least {_AIOHTTP_GOAL:,} requests per"
                " CPU second",
                result=per_cpu_s.format(),
                is_met=per_cpu_s.median >= _AIOHTTP_GOAL,
            )
        )
    return goals


def _explain_missed(results: Results, names: Sequence[str], connections: int, cores: int) -> Iterator[str]:
    """Why goals were missed, as far as the figures say."""
    for name, least in ((WRK, _WRK_GOAL), (H2LOAD, 1.0)):
        if name not in names:
            continue
        ratio = compare(results.rounds, OKU, name, connections, "rate_rps").median
        if ratio < least:
            yield fill_text(
                _BEHIND,
                connections=connections,
                ratio=ratio,
                name=name,
                cost=compare(results.rounds, OKU, name, connections, "cpu_us").median,
                share=build_spread(pick(results.rounds, OKU, connections, "cpu_share")).median,
                other_share=build_spread(pick(results.rounds, name, connections, "cpu_share")).median,
                cores=cores,
            )
    if connections == _AIOHTTP_CONNECTIONS and BARE_LOOP in names:
        made = {
            name: 1e6 / build_spread(pick(results.rounds, name, connections, "cpu_us")).median
            for name in (OKU_AIOHTTP, BARE_LOOP)
        }
        if made[OKU_AIOHTTP] < _AIOHTTP_GOAL and made[BARE_LOOP] < _AIOHTTP_GOAL:
            yield fill_text(_SLOW_LOOP, goal=_AIOHTTP_GOAL, loop=made[BARE_LOOP])
