"""The section of the benchmark `abuse`: attacks without a token."""

from oku_benchmarks.cases.abuse import CONCURRENCY, PartResults, Results
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text

_PROBE_GOAL_MS = 1000
_GROWTH_GOAL_MB = 10
_TEXT = """\
Three attackers who have no token, all at once for {seconds:.0f} s, each a process on the same machine: bodies
of 1 MB that unpack to 1 GiB; 4,000 connections with half a head each, made anew when they are closed; and
malformed requests, one after the other. First at the coordinator, then at the delay server, while a run with
{concurrency} requests in flight goes on. Its rate is that of a machine whose processors the attackers take.

{table}

What the attackers did: {attacks}.
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    parts = results.parts
    rows = [
        ["slowest of the probes", *(f"{part.worst_probe_ms:,.0f} ms of {part.probes}" for part in parts)],
        ["memory", *(f"{part.memory_mb:+.1f} MB" for part in parts)],
        ["log", *(f"{1000 * part.log_mb:+.1f} kB" for part in parts)],
        ["run before", *(f"{part.calm_rps:,.0f}/s" for part in parts)],
        ["run meanwhile", *(f"{part.abused_rps:,.0f}/s" for part in parts)],
    ]
    return Section(
        title="Abuse",
        text=fill_text(
            _TEXT,
            seconds=parts[0].seconds,
            concurrency=CONCURRENCY,
            table=build_table(["", *(part.name for part in parts)], rows),
            attacks="; ".join(map(_describe_attacks, parts)),
        ),
        goals=[_build_goal(part) for part in parts],
        packages=("aiohttp", "httptools", "uvloop"),
    )


def _describe_attacks(part: PartResults) -> str:
    done = [
        f"{count:,} {kind} {what.replace('_', ' ')}"
        for kind, counts in part.attacks.items()
        for what, count in counts.items()
    ]
    return f"at the {part.name} {', '.join(done)}"


def _build_goal(part: PartResults) -> Goal:
    return Goal(
        text=f"{part.name} under abuse: the probe within 1 s, memory and log less than {_GROWTH_GOAL_MB} MB"
        " more, and the run goes on",
        result=f"{part.worst_probe_ms:,.0f} ms, {part.memory_mb:+.1f} MB, {part.log_mb:+.3f} MB,"
        f" {part.abused_rps:,.0f}/s",
        is_met=part.worst_probe_ms < _PROBE_GOAL_MS
        and part.memory_mb < _GROWTH_GOAL_MB
        and part.log_mb < _GROWTH_GOAL_MB
        and part.abused_rps > 0,
    )
