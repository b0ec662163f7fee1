"""The section of the benchmark `answers`: the same answer, and answers that vary, beside wrk and h2load."""

from collections.abc import Iterator, Mapping, Sequence

from oku_benchmarks.cases.answers import LOOP_CONNECTIONS, LOOP_KINDS, Results
from oku_benchmarks.cases.peer_contest import OKU, OKU_AIOHTTP, Round, compare, pick
from oku_benchmarks.cases.request_profile import Profile
from oku_benchmarks.measuring.spread import build_spread
from oku_benchmarks.sections.profile_table import NO_PROFILE, build_profile_table, explain_differences
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text
from oku_benchmarks.turns.answer_kinds import CHUNKED, JSON, LENGTHS, SAME, VARYING
from oku_benchmarks.turns.rivals import BARE_LOOP, H2LOAD, WRK

_LEAST: Mapping[str, float] = {SAME: 0.95, VARYING: 0.9, CHUNKED: 0.85, JSON: 0.85}
"""Of the rate of wrk and of h2load."""
_LOOP_LEAST = 1.0
_CONTESTANTS = (OKU, WRK, H2LOAD, OKU_AIOHTTP, BARE_LOOP)
_OWN = {OKU: OKU, WRK: OKU, H2LOAD: OKU, OKU_AIOHTTP: OKU_AIOHTTP, BARE_LOOP: OKU_AIOHTTP}
"""Which engine a contestant is held against."""
_TEXT = """\
The benchmark before this one asks a target that always says the same, byte for byte, and the engine
`httptools` remembers whole answers that it has read before. Services send a request id, a time with its
milliseconds, another body. Here one Oku worker of a real `oku run` (with its broker, coordinator, ledger and
live view), `wrk -t1` and `h2load -t1 --h1` take turns at one nginx process that gives both: {rounds} rounds,
{turn_s} s for each turn, in which most make a million requests, all kinds of answers in each round. `oku,
aiohttp` is the other engine, the bare loop forty lines of aiohttp. Rates, processor time and their ratios are
taken as above.

`same` is `Hello, World!`, where only `Date` changes, once a second. `varying` has a request id, in a header
and in a body of JSON, and the time with its milliseconds; its length stays the same. `chunked` is that in
chunks, without a `Content-Length`. `json` has bodies of {lengths} lengths around 1 kB, with id and time.
`tls` is `varying` over TLS 1.3, with one cipher for all. `four targets` are `varying`, `chunked`, `json` and
one that sets a cookie, in turn: Oku has a spec with four targets, wrk a script in Lua, h2load four URLs.

{tables}

{profile}{missing}"""
_PROFILE = """\
Where the processor time of a request goes, in µs, with {connections} connections, sampled by `perf` in turns
of their own. The extension is what is compiled of Oku's worker (decision 58); httptools is the parser, for
answers that are not recognised.

{table}

{reasons}"""


def build_section(results: Results, cores: int) -> Section:
    """Everything of the benchmark."""
    every = [entry for rounds in results.rounds.values() for entry in rounds]
    connections = sorted({entry.connections for entry in every})
    reasons = sorted(set(results.missing.values()))
    return Section(
        title="The same answer, and answers that vary",
        text=fill_text(
            _TEXT,
            rounds=max(entry.number for entry in every),
            turn_s=results.turn_s,
            lengths=len(LENGTHS),
            tables="\n\n".join(_build_table(results, count, cores) for count in connections),
            profile=_describe_profiles(results.profiles),
            missing=f"\n\nLeft out: {'; '.join(reasons)}." if reasons else "",
        ),
        goals=[goal for count in connections for goal in _build_goals(results, count)],
        packages=("httptools", "aiohttp", "uvloop", "nginx", "wrk", "h2load", "perf"),
    )


def _build_table(results: Results, connections: int, cores: int) -> str:
    header = [
        f"{connections:,} connections, {cores} cores", "requests/s", "Oku's rate to this", "µs of CPU each",
        "share of a core", "nginx's share",
    ]  # fmt: skip
    rows = [
        _build_row(kind, rounds, name, connections)
        for kind, rounds in results.rounds.items()
        for name in _CONTESTANTS
        if _has(rounds, name, connections)
    ]
    return build_table(header, rows)


def _build_row(kind: str, rounds: Sequence[Round], name: str, connections: int) -> list[str]:
    def spread(attribute: str, pattern: str) -> str:
        return build_spread(pick(rounds, name, connections, attribute)).format(pattern)

    own = _OWN[name]
    return [
        f"{kind}: {name}",
        spread("rate_rps", ",.0f"),
        NONE if name == own else compare(rounds, own, name, connections, "rate_rps").format(".2f"),
        spread("cpu_us", ".1f"),
        spread("cpu_share", ".2f"),
        spread("target_share", ".2f"),
    ]


def _build_goals(results: Results, connections: int) -> Iterator[Goal]:
    for kind, least in _LEAST.items():
        rounds = results.rounds[kind]
        for name in (WRK, H2LOAD):
            if _has(rounds, name, connections):
                ratio = compare(rounds, OKU, name, connections, "rate_rps")
                yield Goal(
                    text=f"rate, answers `{kind}`, {connections:,} connections: at least {least:g} of that of"
                    f" {name}",
                    result=ratio.format(".2f"),
                    is_met=ratio.median >= least,
                )
    for kind in LOOP_KINDS:
        rounds = results.rounds[kind]
        if not _has(rounds, BARE_LOOP, connections):
            continue
        for text, ratio in (
            ("rate", compare(rounds, OKU_AIOHTTP, BARE_LOOP, connections, "rate_rps")),
            ("requests per CPU second", compare(rounds, BARE_LOOP, OKU_AIOHTTP, connections, "cpu_us")),
        ):
            yield Goal(
                text=f"engine aiohttp, {text}, answers `{kind}`, {connections:,} connections: at least"
                f" {_LOOP_LEAST:g} of that of the bare loop",
                result=ratio.format(".2f"),
                is_met=ratio.median >= _LOOP_LEAST,
            )


def _has(rounds: Sequence[Round], name: str, connections: int) -> bool:
    return bool(pick(rounds, name, connections, "number"))


def _describe_profiles(profiles: Sequence[Profile]) -> str:
    if not profiles:
        return NO_PROFILE
    return fill_text(
        _PROFILE,
        connections=LOOP_CONNECTIONS,
        table=build_profile_table(profiles),
        reasons=explain_differences(profiles, (SAME, VARYING), (OKU, WRK)),
    )
