"""The section of the benchmark `rates`: load generators keep to a rate, and what came of a freeze."""

from collections.abc import Callable, Iterator, Sequence

from oku_benchmarks.cases.contest import OKU, OKU_2, OKU_4, OKU_AIOHTTP, Contest, Round
from oku_benchmarks.cases.rates import Results
from oku_benchmarks.measuring.spread import build_ratios, build_spread
from oku_benchmarks.sections.freeze_section import build_freeze_goals, build_freeze_text
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text
from oku_benchmarks.turns.paced_rivals import FORTIO, HEY, K6, PACED_RIVALS, VEGETA

_OKUS = (OKU, OKU_2, OKU_4, OKU_AIOHTTP)
_DEARER = (K6, VEGETA, FORTIO, HEY)
_LATE_P99_MS, _LATE_P99_9_MS = 2.0, 5.0
_LEAST_SHARE_US = 0.1
_TEXT = """\
Each tool is asked for a rate and a time, with {connections} connections, at a target that answers at once:
{plans}; {rounds}, in turn. `oku` has the engine `httptools` and one worker, which are not what it has
by default. Tools that want the rate of each connection (h2load, hey) get its share of it; fortio spreads its
connections over time (`-uniform`); wrk2 and h2load have one thread. Oku brings its broker, coordinator and
ledger; nobody draws a live view.

One target for all (`tests/benchmarks/oku_benchmarks/stacks/arrival_server.c`) notes when each request
arrived. {stamping} A plan has no beginning that a target could know. For the counts, it is laid where those
of all its seconds are nearest to the rate; *off* are seconds whose count is wrong by more than one, and
*worst* is the largest difference. For lateness, the k-th arrival is compared with the k-th of the evenly
spaced times of the plan, which is laid so that one request in a hundred comes early. So a tool that leaves
out a request is ahead of its plan from there on, and one that sends in bursts is as late as its bursts are
long. *Even* are gaps between two arrivals of half to one and a half times the plan's. Processor time is that
of all processes of a tool, all of Oku's, between 20 % and 90 % of its requests; who sends each request at its
own time wakes up for each, which bursts save. The figures are medians over the rounds, in brackets the
smallest and the largest; in a single round on a machine with other work, one pause of a process can make a
p99.

{contests}{missing}

### The target freezes

{freeze}
"""
_CONTEST = """\
{table}

{own} {parts} {occasion}
"""
_OWN = """\
What Oku itself says of its lateness at {rate:,}/s (p99, due to sent, against the plan of its own clock):
{figures}."""
_PARTS = """\
Of the processor time of `oku` for a request, {parts}: command, broker and coordinator keep the ledger, at a
cost per second that hardly depends on the rate. At a low rate, each request and each answer wakes the worker
by itself, which is most of its cost; at a high one, many share a wake."""
_UNMEASURED = "Not measured yet."
_BY_KERNEL = """\
The kernel stamps it as it comes over the loopback, while the client still sends: {p50:g} µs after the send
begins (p99 {p99:g} µs), and no delay of the target is in it."""
_BY_SERVER = """\
This system's kernel does not stamp it, so the target's own delays are in it: {p50:g} µs after the send begins
(p99 {p99:g} µs)."""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    stamping, contests = results.stamping, results.contests
    rounds = max((entry.number for each in contests for entry in each.rounds), default=0)
    reasons = sorted(set(results.missing.values()))
    return Section(
        title="To keep a rate",
        text=fill_text(
            _TEXT,
            connections=results.connections,
            stamping=(_BY_KERNEL if stamping.by_kernel else _BY_SERVER).format(
                p50=stamping.p50_us, p99=stamping.p99_us
            ),
            plans=" and ".join(f"{each.rate:,}/s for {each.seconds} s" for each in contests) or NONE,
            rounds="one round" if rounds == 1 else f"{rounds} rounds",
            contests="\n\n".join(_build_contest(each) for each in contests),
            missing=f"\n\nLeft out: {'; '.join(reasons)}." if reasons else "",
            freeze=build_freeze_text(results.freeze, results.connections) if results.freeze else _UNMEASURED,
        ),
        goals=[
            *(goal for contest in contests for goal in _build_goals(contest)),
            *(build_freeze_goals(results.freeze) if results.freeze else ()),
        ],
        packages=(
            "httptools", "aiohttp", "uvloop", "wrk2", "h2load", "oha", "vegeta", "fortio", "hey", "k6"
        ),
    )  # fmt: skip


def _build_contest(contest: Contest) -> str:
    planned = contest.rounds[0].punctuality.planned
    header = [
        f"{contest.rate:,}/s", f"requests of {planned:,}", "off", "worst", "even", "gap p99, ms",
        "late p50, ms", "late p99, ms", "late p99.9, ms", "µs of CPU each",
    ]  # fmt: skip
    return fill_text(
        _CONTEST,
        table=build_table(header, [_build_row(contest, name) for name in _find_names(contest)]),
        own=_OWN.format(rate=contest.rate, figures="; ".join(_describe_own(contest))),
        parts=_PARTS.format(parts=_describe_parts(contest)),
        occasion=contest.occasion.describe(),
    )


def _build_row(contest: Contest, name: str) -> list[str]:
    def spread(figure: Callable[[Round], float], pattern: str) -> str:
        return build_spread(contest.pick(name, figure)).format(pattern)

    def middle(figure: Callable[[Round], float], pattern: str) -> str:
        return format(build_spread(contest.pick(name, figure)).median, pattern)

    return [
        name,
        spread(lambda entry: entry.punctuality.arrived, ",.0f"),
        middle(lambda entry: entry.punctuality.off_seconds, ".0f"),
        middle(lambda entry: entry.punctuality.worst_off, ",.0f"),
        middle(lambda entry: entry.punctuality.gaps.even_share, ".0%"),
        middle(lambda entry: entry.punctuality.gaps.p99, ",.2f"),
        middle(lambda entry: entry.punctuality.lateness.p50, ",.2f"),
        spread(lambda entry: entry.punctuality.lateness.p99, ",.2f"),
        middle(lambda entry: entry.punctuality.lateness.p99_9, ",.2f"),
        spread(lambda entry: entry.cpu_us, ",.1f"),
    ]


def _build_goals(contest: Contest) -> Iterator[Goal]:
    names, rate = _find_names(contest), contest.rate
    for name in (name for name in names if name in _OKUS):
        yield from _build_own_goals(contest, name)
    others = [name for name in names if name not in _OKUS]
    best = min(others, key=lambda name: _measure_late_p99(contest, name), default=None)
    if best is not None:
        ours, theirs = (_measure_late_p99(contest, name) for name in (OKU, best))
        yield Goal(
            text=f"{rate:,}/s, {OKU}: lateness at the target, p99, no larger than the best of the others",
            result=f"{ours:.2f} ms; {best}: {theirs:.2f} ms",
            is_met=ours <= theirs,
        )
    for name in (name for name in _DEARER if name in others):
        ratio = build_ratios(*(contest.pick(each, lambda entry: entry.cpu_us) for each in (OKU, name)))
        yield Goal(
            text=f"{rate:,}/s, {OKU}: less processor time for a request than {name}",
            result=f"{ratio.format('.2f')} of it",
            is_met=ratio.median < 1,
        )


def _build_own_goals(contest: Contest, name: str) -> Iterator[Goal]:
    rate = contest.rate
    seen = [entry.punctuality for entry in contest.rounds if entry.contestant == name]
    error = max(abs(each.arrived - each.planned) for each in seen)
    yield Goal(text=f"{rate:,}/s, {name}: error of the count is 0", result=f"{error:,}", is_met=error == 0)
    off = sum(each.off_seconds for each in seen)
    yield Goal(
        text=f"{rate:,}/s, {name}: each second's count is the plan's, to one request",
        result=f"{off} of {sum(len(each.seconds) for each in seen)} seconds off",
        is_met=off == 0,
    )
    p99, p99_9 = (
        build_spread(figures)
        for figures in (
            [each.lateness.p99 for each in seen],
            [each.lateness.p99_9 for each in seen],
        )
    )
    yield Goal(
        text=f"{rate:,}/s, {name}: lateness at the target, p99 under {_LATE_P99_MS:g} ms and p99.9 under"
        f" {_LATE_P99_9_MS:g} ms",
        result=f"{p99.format('.2f')} ms, {p99_9.format('.2f')} ms",
        is_met=p99.median < _LATE_P99_MS and p99_9.median < _LATE_P99_9_MS,
    )


def _find_names(contest: Contest) -> Sequence[str]:
    there = {entry.contestant for entry in contest.rounds}
    return [name for name in (*_OKUS, *PACED_RIVALS) if name in there]


def _measure_late_p99(contest: Contest, name: str) -> float:
    return build_spread(contest.pick(name, lambda entry: entry.punctuality.lateness.p99)).median


def _describe_own(contest: Contest) -> Iterator[str]:
    for name in (name for name in _find_names(contest) if name in _OKUS):
        figures = [
            entry.own_p99_ms
            for entry in contest.rounds
            if entry.contestant == name and entry.own_p99_ms is not None
        ]
        yield f"{name} {build_spread(figures).median:.2f} ms" if figures else f"{name} {NONE}"


def _describe_parts(contest: Contest) -> str:
    rounds = [entry.cpu_us_by_process for entry in contest.rounds if entry.contestant == OKU]
    shares_us = {process: build_spread(each[process] for each in rounds).median for process in rounds[0]}
    return ", ".join(
        f"{'the command' if process == OKU else process} takes {_describe_share(share_us)}"
        for process, share_us in shares_us.items()
    )


def _describe_share(share_us: float) -> str:
    """The kernel counts ticks of 10 ms, so of very little it may have seen nothing."""
    return f"{share_us:.1f} µs" if share_us >= _LEAST_SHARE_US else f"less than {_LEAST_SHARE_US:g} µs"
