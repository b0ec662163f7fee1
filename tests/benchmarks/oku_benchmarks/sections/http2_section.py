"""The section of the benchmark `http2`: Oku beside h2load, oha and k6, and the memory of a stream."""

from collections.abc import Iterable, Iterator, Sequence

from oku_benchmarks.cases import connections
from oku_benchmarks.cases.connections import BASE, measure_cost_kb
from oku_benchmarks.cases.http2 import CONNECTIONS, DELAY, STREAMS_HELD, Results, list_contestants
from oku_benchmarks.cases.peer_contest import HTTP2, OKU, Round, compare, pick
from oku_benchmarks.cases.request_profile import Profile
from oku_benchmarks.measuring.spread import build_spread
from oku_benchmarks.sections.profile_table import NO_PROFILE, build_profile_table, explain_differences
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text
from oku_benchmarks.turns.nghttpd import COUNTED_WITHIN, FEW, MANY
from oku_benchmarks.turns.rivals import H2LOAD, K6, K6_1, OHA_1

_H2LOAD_LEAST = 0.6
"""Of the rate of h2load."""
_CHEAPER_THAN = (OHA_1, K6_1, K6)
_STREAM_GOAL_KB = 2
_TEXT = """\
One Oku worker of a real `oku run --http2` (with its broker, coordinator, ledger and live view), `h2load -t1`,
oha and k6 take turns: {rounds} rounds, {turn_s} s for each turn, all kinds of answers in each round. All have
{connections} connections with {streams} requests in flight on each (`-c {connections} -m {streams}` of
h2load, `-c {connections} -p {streams}` of oha), but for k6: its users have a connection of their own and wait
for each answer, so it has {in_flight} users with a connection each, and it speaks HTTP/2 only over TLS. oha
and k6 are run held to one thread, and as they come.

`nginx, clear` is `Hello, World!` from the memory of one nginx process, in HTTP/2 with prior knowledge,
`nginx, TLS` the same over TLS 1.3, with one cipher for all, `nginx, varying` a body of JSON with a request id
and the time, and the id in a header. `nghttpd, clear` is a file with `Hello, World!`, which nghttpd serves
with one thread.

Rates, processor time and their ratios are taken as above, between 20 % and 90 % of a turn's requests. nginx
counts them itself (`stub_status`, which is asked in HTTP/1.1). nghttpd does not: the bytes that it has
written are counted (`/proc/PID/io`), divided by those of an answer, of which h2load has fetched {few} and
{many} beforehand to tell. All contestants get answers of the same length; in each turn of Oku that count is
held against the number of requests of the run and may differ by {within:.1%}. Processor time is that of
Oku's worker, or of all threads of another's process.

{table}

{limits}

{profile}

### Memory of a stream

One worker and nginx, which passes requests on to one process of `oku server --delay {delay}`; {held} streams
on each connection, {rounds} rounds in turn. Memory is resident memory (VmRSS), the median over the time in
which all are in flight. What a stream costs is the difference between both runs of a round divided by the
difference in streams; its share of a connection is in it. kB are 10³ bytes.

{memory}{missing}"""
_LIMITS = """\
Each target is one thread. Where it uses more of a core than the load generator, it is the target that limits
the rate, and the ratio of rates says little of the load generators; that of processor time does. The share of
a core that the target uses: {shares}."""
_PROFILE = """\
Where the processor time of a request goes, in µs, sampled by `perf` in turns of their own. Both use
libnghttp2: h2load that of the system, Oku the one inside of ngh2, the binding for Python, which is counted
with it.

{table}

{reasons}"""


def build_section(results: Results, cores: int) -> Section:
    """Everything of the benchmark."""
    reasons = sorted(set(results.missing.values()))
    return Section(
        title="HTTP/2 beside other load generators",
        text=fill_text(
            _TEXT,
            rounds=_count_rounds(results.rounds.values()),
            turn_s=results.turn_s,
            connections=CONNECTIONS,
            streams=HTTP2.streams,
            in_flight=CONNECTIONS * HTTP2.streams,
            few=f"{FEW:,}",
            many=f"{MANY:,}",
            within=COUNTED_WITHIN,
            table=_build_table(results, cores),
            limits=_describe_limits(results),
            profile=_describe_profiles(results.profiles),
            delay=DELAY,
            held=STREAMS_HELD,
            memory=_build_memory_table(results.memory),
            missing=f"\n\nLeft out: {'; '.join(reasons)}." if reasons else "",
        ),
        goals=[
            *_build_rate_goals(results),
            *_build_cost_goals(results),
            *_build_memory_goals(results.memory),
        ],
        packages=("ngh2", "uvloop", "nginx", "nghttpd", "h2load", "oha", "k6", "perf"),
    )


def _count_rounds(turns: Iterable[Sequence[Round]]) -> int:
    return max(entry.number for rounds in turns for entry in rounds)


def _build_table(results: Results, cores: int) -> str:
    header = [
        f"{CONNECTIONS} connections, {cores} cores", "requests/s", "Oku's rate to this", "µs of CPU each",
        "Oku's requests per CPU second to this", "share of a core", "the target's share",
    ]  # fmt: skip
    rows = [
        _build_row(kind, rounds, name)
        for kind, rounds in results.rounds.items()
        for name in list_contestants(kind)
        if _has(rounds, name)
    ]
    return build_table(header, rows)


def _build_row(kind: str, rounds: Sequence[Round], name: str) -> list[str]:
    def spread(attribute: str, pattern: str) -> str:
        return build_spread(pick(rounds, name, CONNECTIONS, attribute)).format(pattern)

    is_own = name == OKU
    return [
        f"{kind}: {name}",
        spread("rate_rps", ",.0f"),
        NONE if is_own else compare(rounds, OKU, name, CONNECTIONS, "rate_rps").format(".2f"),
        spread("cpu_us", ".1f"),
        NONE if is_own else compare(rounds, name, OKU, CONNECTIONS, "cpu_us").format(".2f"),
        spread("cpu_share", ".2f"),
        spread("target_share", ".2f"),
    ]


def _build_rate_goals(results: Results) -> Iterator[Goal]:
    for kind, rounds in results.rounds.items():
        if _has(rounds, H2LOAD):
            ratio = compare(rounds, OKU, H2LOAD, CONNECTIONS, "rate_rps")
            yield Goal(
                text=f"HTTP/2, rate, {kind}: at least {_H2LOAD_LEAST:g} of that of {H2LOAD}",
                result=ratio.format(".2f"),
                is_met=ratio.median >= _H2LOAD_LEAST,
            )


def _build_cost_goals(results: Results) -> Iterator[Goal]:
    for kind, rounds in results.rounds.items():
        for name in _CHEAPER_THAN:
            if _has(rounds, name):
                ratio = compare(rounds, name, OKU, CONNECTIONS, "cpu_us")
                yield Goal(
                    text=f"HTTP/2, requests per CPU second, {kind}: more than {name}",
                    result=ratio.format(".2f"),
                    is_met=ratio.median > 1,
                )


def _build_memory_goals(rounds: Sequence[connections.Round]) -> Iterator[Goal]:
    for in_flight in sorted({entry.in_flight for entry in rounds} - {BASE}):
        cost_kb = measure_cost_kb(rounds, in_flight)
        yield Goal(
            text=f"HTTP/2, memory of a stream, {in_flight:,} in flight: at most {_STREAM_GOAL_KB} kB",
            result=f"{cost_kb.format('.2f')} kB",
            is_met=cost_kb.median <= _STREAM_GOAL_KB,
        )


def _build_memory_table(rounds: Sequence[connections.Round]) -> str:
    rows = []
    for in_flight in sorted({entry.in_flight for entry in rounds}):
        own = [entry for entry in rounds if entry.in_flight == in_flight]
        rows.append(
            [
                f"{in_flight:,}",
                f"{in_flight // STREAMS_HELD:,}",
                f"{build_spread(entry.worker_mb for entry in own).format('.1f')} MB",
                f"{build_spread(entry.peak_mb for entry in own).format('.1f')} MB",
                NONE if in_flight == BASE else f"{measure_cost_kb(rounds, in_flight).format('.2f')} kB",
            ]
        )
    return build_table(["in flight", "connections", "worker", "peak", "each beyond the first"], rows)


def _describe_limits(results: Results) -> str:
    """Who gives out first at each kind of answers, under Oku and under h2load."""
    by_kind = []
    for kind, rounds in results.rounds.items():
        shares = [
            f"{_find_share(rounds, name, 'target_share')} under {name} (which itself uses"
            f" {_find_share(rounds, name, 'cpu_share')})"
            for name in (OKU, H2LOAD)
            if _has(rounds, name)
        ]
        by_kind.append(f"`{kind}` {', '.join(shares)}")
    return fill_text(_LIMITS, shares="; ".join(by_kind))


def _find_share(rounds: Sequence[Round], name: str, attribute: str) -> str:
    return f"{build_spread(pick(rounds, name, CONNECTIONS, attribute)).median:.2f}"


def _describe_profiles(profiles: Sequence[Profile]) -> str:
    if not profiles:
        return NO_PROFILE
    kinds = list(dict.fromkeys(profile.kind for profile in profiles))
    return fill_text(
        _PROFILE,
        table=build_profile_table(profiles),
        reasons=explain_differences(profiles, kinds, (OKU, H2LOAD)),
    )


def _has(rounds: Sequence[Round], name: str) -> bool:
    return bool(pick(rounds, name, CONNECTIONS, "number"))
