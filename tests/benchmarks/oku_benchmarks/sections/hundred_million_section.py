"""The sections of the benchmarks `no-delay` and `posts`: a hundred million requests."""

from oku_benchmarks.cases.hundred_million import NO_DELAY, Results
from oku_benchmarks.measuring.series import measure_growth_mb
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text

_NO_DELAY_GOAL_S = 30 * 60
_POSTS_GOAL_S = 60 * 60
_GROWTH_GOAL_MB = 10
_TEXT = """\
`oku run {flags}`, in a terminal, client and delay servers on the same {cores} cores{kills}. It took
{active} from the first request to the last answer ({took} with starting and ending everything), which is
{rate_rps:,.0f} requests/s.

|  |  |
| --- | ---: |
| requests asked for | {requests:,} |
| accounted | {accounted:,} |
| the servers' own counts | {served:,} |
| resent, at most | {resent_at_most:,} |

Memory is resident memory, in MB of 10⁶ bytes, looked at every {look_s:.0f} s. Growth is that in the last
tenth of the run beyond that after its first tenth (medians of a tenth each); a process that was killed has
begun anew in between.

{table}

![Rate, requests in flight and memory over time](benchmarks/{name}.svg)

![The end screen](benchmarks/{name}.screen.svg)

The summary as JSON: [{name}.summary.json](benchmarks/{name}.summary.json).{notes}
"""


def build_section(name: str, results: Results, cores: int) -> Section:
    """Everything of one of the two."""
    growths_mb = {
        process: measure_growth_mb(memory_mb) for process, memory_mb in results.series.memory_mb.items()
    }
    rows = [
        [process, f"{results.peaks_mb[process]:.1f} MB", NONE if growth is None else f"{growth:+.1f} MB"]
        for process, growth in growths_mb.items()
    ]
    notes = "".join(f"\n\nNote of the summary: {note}." for note in results.notes)
    return Section(
        title=f"{results.requests:,} requests: {_build_title(name)}",
        text=fill_text(
            _TEXT,
            name=name,
            flags=" ".join(results.flags),
            cores=cores,
            kills=_describe_kills(results),
            active=_format_time(results.active_s),
            took=_format_time(results.took_s),
            rate_rps=results.rate_rps,
            requests=results.requests,
            accounted=results.accounted,
            served=results.served,
            resent_at_most=results.resent_at_most,
            look_s=results.series.step_s,
            table=build_table(["process", "peak memory", "growth"], rows),
            notes=notes,
        ),
        goals=[*_build_goals(name, results), _build_growth_goal(name, results, growths_mb)],
        packages=("httptools", "uvloop", "celery", "valkey", "matplotlib"),
    )


def _build_title(name: str) -> str:
    return "without delay" if name == NO_DELAY else "the posts' own workload"


def _describe_kills(results: Results) -> str:
    parts = [f"{kill.process} killed with -9 after {kill.sent:,} requests" for kill in results.kills]
    return f"; {' and '.join(parts)}" if parts else ""


def _build_goals(name: str, results: Results) -> list[Goal]:
    what = f"{results.requests:,} requests, {_build_title(name)}"
    limit_s = _NO_DELAY_GOAL_S if name == NO_DELAY else _POSTS_GOAL_S
    most = results.requests + results.resent_at_most
    return [
        Goal(
            text=f"{what}: under {limit_s // 60} min",
            result=_format_time(results.active_s),
            is_met=results.active_s < limit_s,
        ),
        Goal(
            text=f"{what}: all accounted, the servers' counts within what may have been resent",
            result=f"{results.accounted:,} accounted, {results.served:,} served",
            is_met=results.accounted == results.requests and results.requests <= results.served <= most,
        ),
    ]


def _build_growth_goal(name: str, results: Results, growths_mb: dict[str, float | None]) -> Goal:
    killed = {kill.process for kill in results.kills}
    lasting = [
        (growth, process)
        for process, growth in growths_mb.items()
        if growth is not None and process not in killed
    ]
    growth, process = max(lasting)
    return Goal(
        text=f"{results.requests:,} requests, {_build_title(name)}: no process grows by more than"
        f" {_GROWTH_GOAL_MB} MB",
        result=f"{process} {growth:+.1f} MB",
        is_met=growth <= _GROWTH_GOAL_MB,
    )


def _format_time(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{seconds:.1f} s"
