"""The posts' own case."""

from ..window import CONCURRENCY, EVEN_DELAY, MARGIN_S, OKU, POSTS_DELAY, Results, WindowRun
from .markdown import Goal, Section, build_table

_SHARE_GOAL = 0.97
_FULL_GOAL = 0.97


def build_section(results: Results) -> Section:
    """Everything of the benchmark `window`."""
    lines = [
        "The server of the posts answers after 0, 1, 2 or 3 s, 1.5 s on average, so that a client with",
        f"{CONCURRENCY:,} requests in flight can do 666.7/s and no more (Little's law). How much of that is reached,",
        f"without the first and the last {MARGIN_S} s, and is there a dip where one lease ends and the next begins?",
        "Rates are counted at the server; what is in flight is what the workers say once a second.",
        "",
        f"With `{POSTS_DELAY}` all answers come at whole seconds, so that any 2 s hold more or fewer bursts, leases",
        f"or not. The runs with `{EVEN_DELAY}`, the same mean without bursts, show a dip if there is one: the loop",
        "written by hand knows no leases, what its rate lacks at its lowest is chance.",
        "",
        *build_table(
            [
                "client", "delay", "workers", "leases", "possible", "requests/s", "share", "lowest 2 s",
                "least in flight",
            ],
            [_build_row(run) for run in results.runs],
        ),
    ]  # fmt: skip
    runs = [run for run in results.runs if run.client == OKU]
    return Section(
        title="The posts' own case: a full window",
        lines=lines,
        goals=[*map(_build_share_goal, runs), _build_window_goal(runs)],
        packages=("aiohttp", "uvloop", "celery"),
    )


def _build_row(run: WindowRun) -> list[str]:
    return [
        run.client,
        f"`{run.delay}`",
        str(run.workers),
        str(run.leases or "–"),  # noqa: RUF001  # typography
        f"{run.ceiling_rps:,.1f}/s",
        f"{run.rate_rps:,.1f} over {run.window_s:.0f} s",
        f"{run.rate_rps / run.ceiling_rps:.1%}",
        f"{run.smallest_rps:,.0f}/s",
        f"{min(run.in_flight):,} of {run.workers * CONCURRENCY:,}" if run.in_flight else "–",  # noqa: RUF001
    ]


def _build_share_goal(run: WindowRun) -> Goal:
    share = run.rate_rps / run.ceiling_rps
    workers = "1 worker" if run.workers == 1 else f"{run.workers} workers"
    return Goal(
        text=f"`--delay {run.delay}`, {workers}: at least {_SHARE_GOAL:.0%} of concurrency / mean delay",
        result=f"{share:.1%}",
        is_met=share >= _SHARE_GOAL,
    )


def _build_window_goal(runs: list[WindowRun]) -> Goal:
    fill = min(min(run.in_flight, default=0) / (run.workers * CONCURRENCY) for run in runs)
    return Goal(
        text=f"no dip between leases: at least {_FULL_GOAL:.0%} of the window in flight, in every second",
        result=f"{fill:.1%}",
        is_met=fill >= _FULL_GOAL,
    )
