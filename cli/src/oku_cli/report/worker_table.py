"""Builds the table of workers; of very many, it shows the spread and those that were lost."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from oku_cli.report.bars import build_bar
from oku_cli.report.charts.chart import build_section
from oku_cli.report.markup import Html, element
from oku_core.results.rates import measure_rate
from oku_core.results.summary import ProcessSummary, Summary, Unit, WorkerSummary
from oku_core.tables.formatting import NOTHING, format_count, format_rate, in_units

MOST_WORKERS = 100
"""Up to this many workers have a row each; of more, the spread is shown and at most this many lost ones."""
_OPEN_WORKERS = 16
_SPREADS: tuple[tuple[str, Callable[[Sequence[float]], float]], ...] = (
    ("min", min),
    ("median", median),
    ("max", max),
)


def build_workers(summary: Summary) -> Html | None:
    """Build the section on workers; None if the run had no workers."""
    workers = summary.workers
    if not workers:
        return None
    lost = [worker for worker in workers if worker.lost]
    caption = f"{format_count(len(workers))} worker{'s' if len(workers) > 1 else ''}"
    caption += f", {format_count(len(lost))} lost." if lost else ", none lost."
    parts = [element("p", caption, class_="note")]
    if len(workers) <= _OPEN_WORKERS:
        parts.append(_build_table(workers, summary))
    else:
        parts.append(_build_spread(workers, summary.unit))
        name, shown = ("all workers", workers) if len(workers) <= MOST_WORKERS else ("lost workers", lost)
        if shown:
            parts.append(_fold(name, _build_table(shown[:MOST_WORKERS], summary)))
    if summary.processes:
        parts.append(_build_processes(summary.processes))
    return build_section("Workers", *parts, id_="workers")


def _build_table(workers: Sequence[WorkerSummary], summary: Summary) -> Html:
    # Of the requests of one worker it is not known how many were sent.
    active_s = 0.0 if summary.outcomes.not_sent or summary.outcomes.lost else summary.active_s
    most = max(worker.requests for worker in workers)
    rows = [
        element(
            "tr",
            element("th", worker.name, *_build_lost_label(worker), scope="row"),
            element("td", format_count(worker.requests), class_="number"),
            element("td", build_bar(worker.requests, most, "ok"), class_="bar-cell"),
            element(
                "td",
                format_rate(measure_rate(worker.requests, active_s)) if active_s else NOTHING,
                class_="number wide",
            ),
            element("td", f"{worker.cpu_s:,.1f} s", class_="number"),
            element("td", f"{worker.peak_rss_mb:,.0f} MB", class_="number"),
        )
        for worker in workers
    ]
    return _build_grid(("worker", in_units("requests", summary.unit), "", "rate", "CPU", "peak memory"), rows)


def _build_lost_label(worker: WorkerSummary) -> Iterator[Html]:
    if worker.lost:
        yield element("span", "lost", class_="lost")


def _build_spread(workers: Sequence[WorkerSummary], unit: Unit) -> Html:
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", format_count(round(pick([w.requests for w in workers]))), class_="number"),
            element("td", f"{pick([w.cpu_s for w in workers]):,.1f} s", class_="number"),
            element("td", f"{pick([w.peak_rss_mb for w in workers]):,.0f} MB", class_="number"),
        )
        for name, pick in _SPREADS
    ]
    return _build_grid(("each column by itself", in_units("requests", unit), "CPU", "peak memory"), rows)


def _build_processes(processes: Sequence[ProcessSummary]) -> Html:
    memory = ", ".join(f"{process.name} {process.peak_mb:,.0f} MB" for process in processes)
    return element("p", f"Peak memory of the other processes: {memory}.", class_="note")


def _build_grid(heads: Sequence[str], rows: Sequence[Html]) -> Html:
    classes = {"rate": "wide", "worker": None}
    columns = [element("th", head, scope="col", class_=classes.get(head)) for head in heads]
    return element(
        "table", element("thead", element("tr", *columns)), element("tbody", *rows), class_="workers"
    )


def _fold(name: str, content: Html) -> Html:
    return element("details", element("summary", name), content)
