"""The section of the benchmark `clients`: the posts' clients beside Oku."""

from oku_benchmarks.cases.clients import OKU, PEERS, ClientRun, Results
from oku_benchmarks.measuring.spread import build_spread
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text

_START_GOAL_S = 5
_NAMES = {
    "requests": "`requests`, one by one",
    "session": "`requests.Session`",
    "futures-2": "`requests-futures`, 2 workers",
    "futures-100": "`requests-futures`, 100 workers",
    "aiohttp-gather": "aiohttp, a task for each, semaphore",
    "aiohttp-limited": "aiohttp, limited as completed",
    OKU: "`oku run`, 1 worker",
}
_TEXT = """\
The clients that the posts went through, written anew in their spirit
(`tests/benchmarks/oku_benchmarks/contestants/posts_clients.py`), and `oku run`, each in a process of its
own, at one process of `oku server` that answers at once. The asynchronous clients and Oku have
{concurrency:,} requests in flight. A server without delay shows what a client itself costs; with the delays
of the posts, the first two would take 1.5 s for each request.

Time from the first request to the last answer, in brackets that of the whole command, and peak memory:

{table}

Oku's first figure of memory is that of the worker, the second that of broker, coordinator, worker and
the command itself together, at their highest, with pages that they share counted for each. Starting
these is what a small run pays for an exact account; it does not grow with the run: here it was
{start_s:.1f} s from the command to its first request. Where a client is left out, what it would take is
estimated from its smaller sizes.
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    sizes = sorted({run.requests for run in results.runs})
    cells = {(run.client, run.requests): _build_cell(run) for run in results.runs}
    start_s = build_spread(run.start_s for run in results.runs if run.start_s is not None).median
    rows = [[_NAMES[client], *(cells[client, size] for size in sizes)] for client in (*PEERS, OKU)]
    return Section(
        title="The posts' clients",
        text=fill_text(
            _TEXT,
            concurrency=results.concurrency,
            start_s=start_s,
            table=build_table(["client", *(f"{size:,} requests" for size in sizes)], rows),
        ),
        goals=[_build_start_goal(start_s)],
        packages=("requests", "requests-futures", "aiohttp", "uvloop", "celery"),
    )


def _build_start_goal(start_s: float) -> Goal:
    return Goal(
        text=f"from `oku run` to its first request: under {_START_GOAL_S} s",
        result=f"{start_s:.1f} s",
        is_met=start_s < _START_GOAL_S,
    )


def _build_cell(run: ClientRun) -> str:
    if run.left_out:
        return f"left out: {run.left_out}"
    stack = f" / {run.stack_peak_mb:.0f}" if run.stack_peak_mb is not None else ""
    return f"{_format_s(run.active_s)} ({_format_s(run.took_s)}), {run.peak_mb:.0f}{stack} MB"


def _format_s(seconds: float) -> str:
    digits = 3 if seconds < 0.1 else 2 if seconds < 10 else 0
    return f"{seconds:.{digits}f} s"
