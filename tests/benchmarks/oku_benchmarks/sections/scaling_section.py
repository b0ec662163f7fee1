"""The sections of the benchmarks `scaling` and `trillion`: simulated workers, and very many requests."""

from oku_benchmarks.cases import scaling, trillion
from oku_benchmarks.cases.scaling import RATE_RPS
from oku_benchmarks.cases.scaling_step import Step
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text

_SHARE_GOAL = 0.5
_TAKEN_GOAL = 0.95
_GOAL_WORKERS = 1000
_READY_GOAL_S = 5.0
_TEXT = """\
A real coordinator and a real broker, workers that are simulated: they take leases, claim them, send
progress and report them as workers do that make {rate} requests/s each, but send no request. All of them
share one process and the same processor. Each step begins when both lease slots of every worker are taken;
then comes the window that is measured.

{table}

![Cost and delays over the number of workers](benchmarks/scaling.svg)

*To commit* is from the sending of a report to the end of its transaction, *to lease* from then until a
worker has the lease that takes the free slot; each p50 and p99. Meanwhile the worker executes its other
lease. *Dealt* is how long it takes from the submission until all slots are taken; 250 workers join per
second. A report of {rate} requests/s over ten seconds has 1,673 buckets, a second of progress 226; with more
than a thousand workers, each sends every few seconds, and coarser.
"""
_TRILLION_TEXT = """\
{requests:,} requests accounted by a real coordinator, with {workers} simulated workers and larger leases
than real ones would take; halfway the coordinator is ended with `kill -9` and started again. What grows,
grows with the leases, not with the requests.

{table}

With the largest leases that Oku cuts by itself, 2,000,000 requests, it would be {real_leases:,} leases and
{real_mb:.0f} MB. Holes are what a run leaves behind that was stopped with so many requests in flight: one
slice each, checked in whole when a ledger is opened and a run changes its state, in part at each commit.
"""


def build_section(results: scaling.Results) -> Section:
    """How cost grows with workers."""
    header = [
        "workers", "lease", "reports/s", "events/s", "coordinator", "memory", "to commit, ms", "to lease, ms",
        "broker", "dealt",
    ]  # fmt: skip
    return Section(
        title="How cost grows with workers",
        text=fill_text(_TEXT, rate=RATE_RPS, table=build_table(header, map(_build_row, results.steps))),
        goals=[goal for step in results.steps for goal in _build_goals(step)],
        packages=("celery", "kombu", "redis", "valkey"),
    )


def build_trillion_section(results: trillion.Results) -> Section:
    """The ledger of very many requests."""
    holes = results.holes
    real_leases = results.requests // 2_000_000
    rows = [
        ["requests accounted", f"{results.requests:,}"],
        ["leases", f"{results.leases:,}"],
        ["ledger", f"{results.ledger_mb:.2f} MB"],
        ["ledger, for each lease", f"{1e6 * results.ledger_mb / results.leases:.0f} bytes"],
        ["coordinator, peak memory", f"{results.coordinator_peak_mb:.1f} MB"],
        ["broker, peak memory", f"{results.broker_peak_mb:.1f} MB"],
        ["ready again after `kill -9`", f"{results.ready_after_kill_s:.2f} s"],
        ["resent, at most", f"{results.resent_at_most:,}"],
        [f"ledger with {holes.holes:,} holes", f"{holes.ledger_mb:.2f} MB"],
        ["opened and checked in whole", f"{holes.open_s:.2f} s"],
    ]
    return Section(
        title="The ledger of a trillion requests",
        text=fill_text(
            _TRILLION_TEXT,
            requests=results.requests,
            workers=results.workers,
            table=build_table(["", "measured"], rows),
            real_leases=real_leases,
            real_mb=results.ledger_mb / results.leases * real_leases,
        ),
        goals=[
            Goal(
                text=f"coordinator ready again after `kill -9` with {results.leases:,} leases: under"
                f" {_READY_GOAL_S:.0f} s",
                result=f"{results.ready_after_kill_s:.2f} s",
                is_met=results.ready_after_kill_s < _READY_GOAL_S,
            )
        ],
        packages=("celery", "kombu", "redis", "valkey"),
    )


def _build_row(step: Step) -> list[str]:
    return [
        f"{step.workers:,}",
        f"{step.lease_s:.0f} s",
        f"{step.reports_per_s:,.1f}",
        f"{step.progress_per_s:,.0f}",
        f"{step.coordinator_cpu:.1%} of a core",
        f"{step.coordinator_rss_mb:.0f} MB",
        f"{step.commit.p50_ms:,.0f}, {step.commit.p99_ms:,.0f}",
        f"{step.dispatch.p50_ms:,.0f}, {step.dispatch.p99_ms:,.0f}",
        f"{step.broker_cpu:.1%} of a core, {step.broker_peak_mb:.0f} MB",
        f"{step.dealt_s:.0f} s",
    ]


def _build_goals(step: Step) -> list[Goal]:
    if step.workers == _GOAL_WORKERS:
        return [
            Goal(
                text=f"{step.workers:,} workers, leases of {step.lease_s:.0f} s, progress each second: under"
                " half a core",
                result=f"{step.coordinator_cpu:.1%}",
                is_met=step.coordinator_cpu < _SHARE_GOAL,
            )
        ]
    if step.workers > _GOAL_WORKERS:
        due_per_s = step.workers / step.lease_s
        return [
            Goal(
                text=f"{step.workers:,} workers, leases of {step.lease_s:.0f} s: of {due_per_s:.0f} reports/s"
                f" over {_TAKEN_GOAL:.0%} are taken in the window",
                result=f"{step.reports_per_s:.1f}/s",
                is_met=step.reports_per_s > _TAKEN_GOAL * due_per_s,
            )
        ]
    return []
