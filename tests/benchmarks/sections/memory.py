"""Memory of worker and coordinator, processor of the coordinator."""

from ..memory import Results
from ..oku_turn import COORDINATOR, WORKER
from .markdown import Goal, Section, build_table

_WORKER_GOAL_MB = 110
_GROWTH_GOAL_MB = 5
_COORDINATOR_GOAL_MB = 130
_COORDINATOR_GOAL_SHARE = 0.1


def build_section(results: Results) -> Section:
    """Everything of the benchmark `memory`."""
    growth_mb = results.worker_late_mb - results.worker_early_mb
    lines = [
        f"One run of {results.late_requests:,} requests at full speed, one worker, {results.concurrency:,} in flight.",
        f"The worker's memory is looked at when {results.early_requests:,} requests have reached the target, and when",
        "the last one has. Rate and shares of a core are those between the two looks. Memory is resident memory,",
        "pages shared with other processes included; peaks are the kernel's own (VmHWM). MB are 10⁶ bytes.",
        "",
        *build_table(
            ["process", "peak memory", "share of a core"],
            [
                [name, f"{results.peaks_mb[name]:.1f} MB", f"{results.cpu_shares[name]:.1%}"]
                for name in (WORKER, COORDINATOR, "broker", "oku")
                if name in results.peaks_mb
            ],
        ),
        "",
        f"The worker had {results.worker_early_mb:.1f} MB after {results.early_requests:,} requests and"
        f" {results.worker_late_mb:.1f} MB after {results.late_requests:,}, at {results.rate_rps:,.0f} requests/s.",
        "`oku` is the command that shows the run.",
    ]
    goals = [
        Goal(
            text=f"worker at {results.concurrency:,} in flight: under {_WORKER_GOAL_MB} MB",
            result=f"{results.worker_peak_mb:.1f} MB",
            is_met=results.worker_peak_mb < _WORKER_GOAL_MB,
        ),
        Goal(
            text=f"worker after {results.late_requests:,} requests: within {_GROWTH_GOAL_MB} MB of that after"
            f" {results.early_requests:,}",
            result=f"{growth_mb:+.1f} MB",
            is_met=abs(growth_mb) <= _GROWTH_GOAL_MB,
        ),
        Goal(
            text=f"coordinator: under {_COORDINATOR_GOAL_MB} MB",
            result=f"{results.coordinator_peak_mb:.1f} MB",
            is_met=results.coordinator_peak_mb < _COORDINATOR_GOAL_MB,
        ),
        Goal(
            text=f"coordinator at 10,000 requests/s: under {_COORDINATOR_GOAL_SHARE:.0%} of a core",
            result=f"{results.coordinator_cpu_share:.1%} at {results.rate_rps:,.0f}/s",
            is_met=results.coordinator_cpu_share < _COORDINATOR_GOAL_SHARE,
        ),
    ]
    return Section(
        title="Memory, and the coordinator's share", lines=lines, goals=goals, packages=("celery", "valkey")
    )
