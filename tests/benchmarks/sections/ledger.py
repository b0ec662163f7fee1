"""The ledger of a hundred million requests."""

from ..ledger import RANGE_SIZE, REAL_RATE_RPS, Results
from .markdown import Goal, Section, build_table

_LEDGER_GOAL_MB = 10
_MEMORY_GOAL_MB = 130


def build_section(results: Results) -> Section:
    """Everything of the benchmark `ledger`."""
    real_s = results.requests / (results.workers * REAL_RATE_RPS)
    cpu_ms = 1000 * results.coordinator_cpu_s / results.leases
    lines = [
        f"{results.requests:,} requests, accounted through a real broker by a real coordinator, with workers that are",
        "simulated: they take leases, claim them, send progress once a second and a report with a histogram of",
        "about two thousand filled buckets, but no request. What is real: every message, every transaction, the",
        "file. What is not: HTTP, and the time. The run is cut as ten workers of the posts' own case would cut it,",
        f"into leases of {RANGE_SIZE:,} requests; {real_s / 3600:.1f} hours of theirs went through in"
        f" {results.took_s:.0f} s.",
        "",
        *build_table(
            ["", "measured"],
            [
                ["requests accounted", f"{results.requests:,}"],
                ["leases", f"{results.leases:,}"],
                ["ledger, all processes ended", f"{results.ledger_mb:.2f} MB"],
                ["ledger and its write-ahead log, run just ended", f"{results.ledger_while_open_mb:.2f} MB"],
                ["bytes for each lease", f"{1e6 * results.ledger_mb / results.leases:.0f}"],
                ["coordinator, peak memory", f"{results.coordinator_peak_mb:.1f} MB"],
                ["coordinator, processor time in all", f"{results.coordinator_cpu_s:.1f} s"],
                ["coordinator, processor time for each lease", f"{cpu_ms:.1f} ms"],
                ["broker, peak memory", f"{results.broker_peak_mb:.1f} MB"],
            ],
        ),
        "",
        f"Over the {real_s / 3600:.1f} hours that such a run takes with real workers, the reports would be"
        f" {results.coordinator_cpu_s / real_s:.2%} of a core.",
        "Faster workers have larger leases, and so fewer of them and a smaller ledger.",
    ]
    goals = [
        Goal(
            text=f"ledger of {results.requests:,} requests: under {_LEDGER_GOAL_MB} MB",
            result=f"{results.ledger_mb:.2f} MB",
            is_met=results.ledger_mb < _LEDGER_GOAL_MB,
        ),
        Goal(
            text=f"coordinator in that run: under {_MEMORY_GOAL_MB} MB",
            result=f"{results.coordinator_peak_mb:.1f} MB",
            is_met=results.coordinator_peak_mb < _MEMORY_GOAL_MB,
        ),
    ]
    return Section(
        title="The ledger of a hundred million requests",
        lines=lines,
        goals=goals,
        packages=("celery", "kombu", "redis", "valkey"),
    )
