"""The sections of the benchmarks `scaling` and `trillion`: simulated workers, and very many requests."""

from oku_benchmarks.cases import scaling, trillion
from oku_benchmarks.cases.scaling import RATE_RPS
from oku_benchmarks.cases.scaling_step import Step
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text

_SHARE_GOALS = {1_000: 0.594, 10_000: 0.707}
"""What the coordinator of commit 9096cef needed on 2026-11-23 on two cores of an AMD EPYC. Its workers
reported each lease once, after 10 and 100 s."""
_WAITED_GOAL = 0.01
_GOAL_WORKERS = 1_000
_READY_GOAL_S = 5.0
_TEXT = """\
A real coordinator and a real broker, workers that are simulated: they take leases and send progress and
checkpoints as workers do that make {rate} requests/s each, but send no request. All of them share one process
and the same processor. Each step begins when every worker has leases and has told how fast it is; then comes
the window that is measured.

{table}

![Cost and delays over the number of workers](benchmarks/scaling.svg)

*Confirmed* is from the sending of a checkpoint until its worker knows that it is committed, p50 and p99.
*Waited* is the share of the workers' time in which they had a run and nothing that they might take. *Dealt*
is how long it takes from the submission until every worker has a lease; 250 workers join per second. A
checkpoint names the positions in flight, 1,000 of them, and about a thousand buckets of latencies; with more
than five hundred workers, each sends progress every few seconds, and coarser.
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
        "workers", "lease", "checkpoint", "checkpoints/s", "events/s", "coordinator", "memory",
        "confirmed, ms", "waited", "broker", "dealt",
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
        f"each {step.checkpoint_s:.0f} s",
        f"{step.checkpoints_per_s:,.1f}",
        f"{step.progress_per_s:,.0f}",
        f"{step.coordinator_cpu:.1%} of a core",
        f"{step.coordinator_rss_mb:.0f} MB",
        f"{step.confirm.p50_ms:,.0f}, {step.confirm.p99_ms:,.0f}",
        f"{step.waited_share:.2%}",
        f"{step.broker_cpu:.1%} of a core, {step.broker_peak_mb:.0f} MB",
        f"{step.dealt_s:.0f} s",
    ]


def _build_goals(step: Step) -> list[Goal]:
    if step.workers < _GOAL_WORKERS:
        return []
    share_goal = _SHARE_GOALS.get(step.workers, 1.0)
    return [
        Goal(
            text=f"{step.workers:,} workers, a checkpoint of each every {step.checkpoint_s:.0f} s: at most"
            f" {share_goal:.0%} of a core",
            result=f"{step.coordinator_cpu:.1%}",
            is_met=step.coordinator_cpu <= share_goal,
        ),
        Goal(
            text=f"{step.workers:,} workers: they wait for leases or limits in under {_WAITED_GOAL:.0%} of"
            " their time",
            result=f"{step.waited_share:.2%}",
            is_met=step.waited_share < _WAITED_GOAL,
        ),
    ]
