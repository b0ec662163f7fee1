"""The section of the benchmark `ledger`: a hundred million requests by simulated workers."""

from oku_benchmarks.cases.ledger import RANGE_SIZE, REAL_RATE_RPS, Results
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text

_LEDGER_GOAL_MB = 10
_MEMORY_GOAL_MB = 130
_TEXT = """\
{requests:,} requests accounted by a real coordinator through a real broker, with workers that are
simulated: they take leases, send progress once a second and checkpoints with a histogram of the posts' own
case, but no request. Real are every message, every transaction and the file; not real are
HTTP and the time. The run is cut as {workers} workers of that case would have it cut, into leases of
{range_size:,} requests, 10 s of work each; {real_hours:.1f} hours of theirs went through in {took_s:.0f}
s.

{table}

Spread over the {real_hours:.1f} hours that real workers take, the coordinator's processor time for it
would be {real_share:.2%} of a core, ticks and progress events not counted. Faster workers get larger
leases, and so fewer of them and a smaller ledger.
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    real_s = results.requests / (results.workers * REAL_RATE_RPS)
    rows = [
        ["requests accounted", f"{results.requests:,}"],
        ["leases", f"{results.leases:,}"],
        ["ledger, all processes ended", f"{results.ledger_mb:.2f} MB"],
        ["ledger with its write-ahead log, before that", f"{results.ledger_while_open_mb:.2f} MB"],
        ["ledger, for each lease", f"{1e6 * results.ledger_mb / results.leases:.0f} bytes"],
        ["coordinator, peak memory", f"{results.coordinator_peak_mb:.1f} MB"],
        ["coordinator, processor time", f"{results.coordinator_cpu_s:.1f} s"],
        [
            "coordinator, processor time for each lease",
            f"{1000 * results.coordinator_cpu_s / results.leases:.1f} ms",
        ],
        ["broker, peak memory", f"{results.broker_peak_mb:.1f} MB"],
    ]
    return Section(
        title="The ledger of a hundred million requests",
        text=fill_text(
            _TEXT,
            requests=results.requests,
            workers=results.workers,
            range_size=RANGE_SIZE,
            real_hours=real_s / 3600,
            took_s=results.took_s,
            table=build_table(["", "measured"], rows),
            real_share=results.coordinator_cpu_s / real_s,
        ),
        goals=_build_goals(results),
        packages=("celery", "kombu", "redis", "valkey"),
    )


def _build_goals(results: Results) -> list[Goal]:
    return [
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
