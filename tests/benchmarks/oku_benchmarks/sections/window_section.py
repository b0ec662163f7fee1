"""The section of the benchmark `window`: the posts' own case."""

from oku_benchmarks.cases.window import (
    CONCURRENCY,
    EVEN_DELAY,
    MARGIN_S,
    OKU,
    POSTS_DELAY,
    Results,
    WindowRun,
)
from oku_benchmarks.sections.section import NONE, Goal, Section, build_table, fill_text

_SHARE_GOAL = 0.97
_FILL_GOAL = 0.97
_TEXT = """\
The server of the posts answers after 0, 1, 2 or 3 s, 1.5 s on average, so that a client with
{concurrency:,} requests in flight can do 666.7/s and no more (Little's law). How much of that is
reached, the first and the last {margin_s} s left out, and is there a dip where one lease ends and the
next begins? Rates are counted at the server; what is in flight is what the workers say once a second.

With `{posts_delay}` all answers come at whole seconds, so that any 2 s hold more or fewer of these
bursts, leases or not. The runs with `{even_delay}` have the same mean and no bursts, and show a dip if
there is one: the loop written by hand knows no leases, so what its rate lacks at its lowest is chance.

{table}
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    runs = [run for run in results.runs if run.client == OKU]
    header = [
        "client", "delay", "workers", "leases", "possible", "requests/s", "share", "lowest 2 s",
        "fewest in flight",
    ]  # fmt: skip
    return Section(
        title="The posts' own case: a full window",
        text=fill_text(
            _TEXT,
            concurrency=CONCURRENCY,
            margin_s=MARGIN_S,
            posts_delay=POSTS_DELAY,
            even_delay=EVEN_DELAY,
            table=build_table(header, [_build_row(run) for run in results.runs]),
        ),
        goals=[*map(_build_share_goal, runs), _build_fill_goal(runs)],
        packages=("aiohttp", "uvloop", "celery"),
    )


def _build_row(run: WindowRun) -> list[str]:
    return [
        run.client,
        f"`{run.delay}`",
        str(run.workers),
        f"{run.leases:,}" if run.leases else NONE,
        f"{run.ceiling_rps:,.1f}/s",
        f"{run.rate_rps:,.1f} over {run.window_s:.0f} s",
        f"{run.rate_rps / run.ceiling_rps:.1%}",
        f"{run.smallest_rps:,.0f}/s",
        f"{min(run.in_flight):,} of {run.workers * CONCURRENCY:,}" if run.in_flight else NONE,
    ]


def _build_share_goal(run: WindowRun) -> Goal:
    share = run.rate_rps / run.ceiling_rps
    workers = "1 worker" if run.workers == 1 else f"{run.workers} workers"
    return Goal(
        text=f"`--delay {run.delay}`, {workers}: at least {_SHARE_GOAL:.0%} of concurrency / mean delay",
        result=f"{share:.1%}",
        is_met=share >= _SHARE_GOAL,
    )


def _build_fill_goal(runs: list[WindowRun]) -> Goal:
    fill = min(min(run.in_flight, default=0) / (run.workers * CONCURRENCY) for run in runs)
    return Goal(
        text=f"no dip between leases: at least {_FILL_GOAL:.0%} of the window in flight, every second",
        result=f"{fill:.1%}",
        is_met=fill >= _FILL_GOAL,
    )
