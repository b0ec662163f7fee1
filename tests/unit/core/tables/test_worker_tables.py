from tests.kit.runs.summaries import build_summary, list_texts, make_outcomes

from oku_core.summary.summary import ProcessSummary, WorkerSummary
from oku_core.tables.worker_tables import describe_processes, list_worker_tables


def make_workers(count: int, lost: int = 0) -> list[WorkerSummary]:
    """Make this many workers, the first of which are lost."""
    return [
        WorkerSummary(name=f"w{n}", requests=1000 * n, cpu_s=10.0 * n, peak_rss_mb=60.0 + n, lost=n <= lost)
        for n in range(1, count + 1)
    ]


def test_each_of_a_few_workers_has_a_row() -> None:
    """It has requests, rate, processor time and memory, and says if the worker was lost."""
    [table] = list_worker_tables(build_summary(workers=make_workers(2, lost=1), active_s=10.0), 8)
    assert table.title == "2 workers, 1 lost"
    assert list_texts(table) == [
        ["worker", "requests", "rate", "CPU", "peak memory", ""],
        ["w1", "1,000", "100/s", "10.0 s", "61 MB", "lost"],
        ["w2", "2,000", "200/s", "20.0 s", "62 MB", ""],
    ]


def test_of_many_workers_the_spread_is_shown() -> None:
    """Minimum, median and maximum of each column by itself, then all workers."""
    spread, workers = list_worker_tables(build_summary(workers=make_workers(9)), 8)
    assert list_texts(spread) == [
        ["each column by itself", "requests", "CPU", "peak memory"],
        ["min", "1,000", "10.0 s", "61 MB"],
        ["median", "5,000", "50.0 s", "65 MB"],
        ["max", "9,000", "90.0 s", "69 MB"],
    ]
    assert (spread.title, workers.title, len(workers.rows)) == ("9 workers, none lost", "All workers", 9)


def test_the_tables_stay_short_however_many_are_lost() -> None:
    """The first lost ones have a row, the others are counted."""
    summary = build_summary(workers=make_workers(1000, lost=500))
    _, lost = list_worker_tables(summary, 8, 3)
    assert (lost.title, len(lost.rows), lost.left_out) == ("Lost workers", 3, 497)
    assert len(list_worker_tables(build_summary(workers=make_workers(1000)), 8)) == 1


def test_a_worker_has_no_rate_where_requests_were_not_sent() -> None:
    """What a worker accounted for is not what it sent."""
    outcomes = make_outcomes(ok=600, not_sent=400)
    [table] = list_worker_tables(build_summary(workers=make_workers(1), outcomes=outcomes), 8)
    assert list_texts(table)[1][2] == "-"


def test_other_processes_are_named_with_their_memory() -> None:
    """A run without workers has no tables."""
    summary = build_summary(workers=[], processes=[ProcessSummary(name="broker", peak_mb=3.4)])
    assert describe_processes(summary) == "Peak memory of the other processes: broker 3 MB."
    assert list_worker_tables(summary, 8) == []
    assert not describe_processes(build_summary())
