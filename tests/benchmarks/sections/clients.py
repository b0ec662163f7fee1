"""The posts' clients beside Oku."""

from ..clients import OKU, PEERS, ClientRun, Results
from .markdown import Section, build_table

_NAMES = {
    "requests": "`requests`, one by one",
    "session": "`requests.Session`",
    "futures-2": "`requests-futures`, 2 workers",
    "futures-100": "`requests-futures`, 100 workers",
    "aiohttp-gather": "aiohttp, a task for each, semaphore",
    "aiohttp-limited": "aiohttp, limited as completed",
    OKU: "`oku run`, 1 worker",
}


def build_section(results: Results) -> Section:
    """Everything of the benchmark `clients`."""
    sizes = sorted({run.requests for run in results.runs})
    lines = [
        "The clients that the posts went through, written anew in their spirit, and `oku run`, all against one",
        "process of `oku server` that answers at once. Each client is a process of its own. Against a server",
        "without delay a client shows what it costs itself; against one with a delay the first two would wait it",
        "out once for every request.",
        f"The asynchronous clients and Oku have {results.concurrency:,} requests in flight.",
        "",
        "Time from the first request to the last answer, in brackets that of the whole command with its start, and",
        "peak memory:",
        "",
        *build_table(
            ["client", *(f"{size:,} requests" for size in sizes)],
            [
                [_NAMES[client], *(_build_cell(run) for size in sizes for run in _pick(results, client, size))]
                for client in (*PEERS, OKU)
            ],
        ),
        "",
        "Oku's first figure of memory is the worker's, the second that of all its processes together (broker,",
        "coordinator, worker and the command itself, pages that they share counted for each). Its start, a broker,",
        "a coordinator and a worker, is what a small run pays for an exact account; it does not grow.",
        "Where a client was left out, the estimate is from its smaller sizes.",
    ]
    return Section(
        title="The posts' clients",
        lines=lines,
        goals=[],
        packages=("requests", "requests-futures", "aiohttp", "uvloop", "celery"),
    )


def _pick(results: Results, client: str, size: int) -> list[ClientRun]:
    return [run for run in results.runs if run.client == client and run.requests == size]


def _build_cell(run: ClientRun) -> str:
    if run.left_out:
        return f"left out: {run.left_out}"
    stack = f" / {run.stack_peak_mb:.0f}" if run.stack_peak_mb is not None else ""
    return f"{_format_s(run.active_s)} ({_format_s(run.took_s)}), {run.peak_mb:.0f}{stack} MB"


def _format_s(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 0.1 else f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
