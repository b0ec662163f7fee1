"""The section of the benchmark `memory`: worker and coordinator in a long run at full speed."""

from oku_benchmarks.cases.memory import Results
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text
from oku_benchmarks.turns.oku_turn import COORDINATOR, WORKER

_WORKER_GOAL_MB = 110
_GROWTH_GOAL_MB = 5
_COORDINATOR_GOAL_MB = 130
_COORDINATOR_GOAL_SHARE = 0.1
_TEXT = """\
One run of {late:,} requests at full speed, one worker, {concurrency:,} in flight. The worker's memory is
looked at when {early:,} requests have reached the target and when the last one has; rate and shares of a
core are those between these two looks. Memory is resident memory, pages shared with other processes
included; peaks are the kernel's own (VmHWM). MB are 10⁶ bytes.

{table}

The worker had {early_mb:.1f} MB after {early:,} requests and {late_mb:.1f} MB after {late:,}, at
{rate_rps:,.0f} requests/s. `oku` is the command that shows the run.
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    rows = [
        [name, f"{results.peaks_mb[name]:.1f} MB", f"{results.cpu_shares[name]:.1%}"]
        for name in (WORKER, COORDINATOR, "broker", "oku")
        if name in results.peaks_mb
    ]
    return Section(
        title="Memory, and the coordinator's share",
        text=fill_text(
            _TEXT,
            early=results.early_requests,
            late=results.late_requests,
            concurrency=results.concurrency,
            table=build_table(["process", "peak memory", "share of a core"], rows),
            early_mb=results.worker_early_mb,
            late_mb=results.worker_late_mb,
            rate_rps=results.rate_rps,
        ),
        goals=[*_build_worker_goals(results), *_build_coordinator_goals(results)],
        packages=("aiohttp", "uvloop", "celery", "valkey"),
    )


def _build_worker_goals(results: Results) -> list[Goal]:
    growth_mb = results.worker_late_mb - results.worker_early_mb
    return [
        Goal(
            text=f"worker, {results.concurrency:,} in flight: under {_WORKER_GOAL_MB} MB",
            result=f"{results.worker_peak_mb:.1f} MB",
            is_met=results.worker_peak_mb < _WORKER_GOAL_MB,
        ),
        Goal(
            text=f"worker after {results.late_requests:,} requests: within {_GROWTH_GOAL_MB} MB of that after"
            f" {results.early_requests:,}",
            result=f"{growth_mb:+.1f} MB",
            is_met=abs(growth_mb) <= _GROWTH_GOAL_MB,
        ),
    ]


def _build_coordinator_goals(results: Results) -> list[Goal]:
    return [
        Goal(
            text=f"coordinator: under {_COORDINATOR_GOAL_MB} MB",
            result=f"{results.coordinator_peak_mb:.1f} MB",
            is_met=results.coordinator_peak_mb < _COORDINATOR_GOAL_MB,
        ),
        Goal(
            text=f"coordinator at about 10,000 requests/s: under {_COORDINATOR_GOAL_SHARE:.0%} of a core",
            result=f"{results.coordinator_cpu_share:.1%} at {results.rate_rps:,.0f}/s",
            is_met=results.coordinator_cpu_share < _COORDINATOR_GOAL_SHARE,
        ),
    ]
