"""The section of the benchmark `wide`: very many requests in flight."""

from oku_benchmarks.cases.wide import MARGIN_S, Results
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text
from oku_core.summary.validity import Flag

_SHARE_GOAL = 0.97
_TEXT = """\
`oku run --engine httptools --workers {workers} --concurrency {concurrency} --delay {delay}`: {in_flight:,}
requests in flight, at delay servers that it brings itself, {servers} of them here with a port each, since a
pair of addresses has no more than some 28,000 connections on its default settings. The first and the last
{margin_s} s are left out; the rate is counted at the servers.

|  | measured |
| --- | ---: |
| possible: concurrency / mean delay | {ceiling_rps:,.0f}/s |
| requests/s, over {window_s:.0f} s | {rate_rps:,.0f}/s |
| share | {share:.1%} |
| lowest second | {lowest_rps:,.0f}/s |
| fewest in flight | {fewest:,} of {in_flight:,} |
| p50 and p99 of the latency | {p50_ms:,.0f} ms and {p99_ms:,.0f} ms |
| flags of the summary | {flags} |

{table}
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    share = results.rate_rps / results.ceiling_rps
    return Section(
        title=f"{results.workers * results.concurrency:,} in flight",
        text=fill_text(
            _TEXT,
            workers=results.workers,
            concurrency=results.concurrency,
            delay=results.delay,
            in_flight=results.workers * results.concurrency,
            servers=results.servers,
            margin_s=MARGIN_S,
            ceiling_rps=results.ceiling_rps,
            window_s=results.window_s,
            rate_rps=results.rate_rps,
            share=share,
            lowest_rps=min(results.rates_rps),
            fewest=min(results.in_flight, default=0),
            p50_ms=results.p50_ms or 0,
            p99_ms=results.p99_ms or 0,
            flags=", ".join(f"`{flag}`" for flag in results.flags) or "none",
            table=build_table(
                ["process", "share of a core", "peak memory"],
                [
                    [name, f"{share_of_core:.2f}", f"{results.peaks_mb[name]:.1f} MB"]
                    for name, share_of_core in results.cpu_shares.items()
                ],
            ),
        ),
        goals=[_build_goal(results, share)],
        packages=("httptools", "uvloop", "celery", "valkey"),
    )


def _build_goal(results: Results, share: float) -> Goal:
    is_full, is_said = share >= _SHARE_GOAL, Flag.WORKER_SATURATED in results.flags
    return Goal(
        text=f"{results.concurrency:,} in flight in each of {results.workers} workers: at least"
        f" {_SHARE_GOAL:.0%} of concurrency / mean delay, or `{Flag.WORKER_SATURATED}` said",
        result=f"{share:.1%}{', said' if is_said else ''}",
        is_met=is_full or is_said,
    )
