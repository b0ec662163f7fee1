"""The section of the benchmark `ledger-days`: what a coordinator costs when its ledger is large."""

from oku_benchmarks.cases.ledger_days import Results
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text

_MEMORY_GOAL_MB = 250
_WAIT_GOAL_MS = 50
_START_GOAL_S = 3
_COMMAND_GOAL_S = 1
_TEXT = """\
A ledger of {runs:,} runs, one of which has {leases:,} leases, made beforehand ({ledger_mb:,.0f} MB). The
coordinator is killed and started again on it; the long run goes on with {workers:,} simulated workers, which
take leases and send checkpoints, but no request; then all of them are killed, and {leases_lost:,} leases are
taken back; at last its whole history is sent. All the while `/healthz` is asked, one question after the
other: it waits behind whatever holds the event loop, be it the ledger or not.

{waits}

The machine's two cores have the simulated workers and Valkey on them, too, so these waits are not those of
the ledger alone. Its calls, one after the other on the same ledger, each with its synchronisation of the
disk:

{calls}

{costs}

The report is a page; with its history read from the coordinator, or as JSON, it takes the same memory.
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    phases = [
        ("nothing goes on", results.idle),
        (f"{results.workers:,} workers work", results.busy),
        ("they are found dead", results.losing),
        ("the history is sent", results.reading),
    ]
    waits = [
        [name, f"{probe.median_ms:.1f} ms", f"{probe.p99_ms:.1f} ms", f"{probe.longest_ms:.1f} ms"]
        for name, probe in phases
    ]
    calls = [[call.name, f"{call.times:,}", f"{call.longest_ms:.1f} ms"] for call in results.ledger.calls]
    costs = [
        ["coordinator, from its start to `/readyz`", f"{results.ready_s:.2f} s"],
        ["coordinator, peak memory", f"{results.coordinator_peak_mb:.1f} MB"],
        ["write-ahead log, largest", f"{results.wal_peak_mb:.1f} MB"],
        ["history of the long run", f"{results.history_mb:,.0f} MB in {results.history_s:.1f} s"],
        ["deleting the long run, with its space", f"{results.ledger.delete_s:.1f} s"],
        ["`oku runs`", f"{results.list.took_s:.2f} s, {results.list.peak_mb:.0f} MB"],
        ["`oku show` of the long run", f"{results.show.took_s:.2f} s, {results.show.peak_mb:.0f} MB"],
        ["`oku report` of the long run", f"{results.report.took_s:.1f} s, {results.report.peak_mb:.0f} MB"],
    ]
    return Section(
        title="A ledger of days",
        text=fill_text(
            _TEXT,
            runs=results.runs,
            leases=results.leases,
            ledger_mb=results.ledger_mb,
            workers=results.workers,
            leases_lost=results.leases_lost,
            waits=build_table(["`/healthz` while", "median", "p99", "longest"], waits),
            calls=build_table(["call of the ledger", "times", "longest"], calls),
            costs=build_table(["", "measured"], costs),
        ),
        goals=_build_goals(results),
        packages=("aiohttp", "celery", "valkey"),
    )


def _build_goals(results: Results) -> list[Goal]:
    longest_ms = max(call.longest_ms for call in results.ledger.calls)
    commands_s = max(results.list.took_s, results.show.took_s)
    scale = f"{results.runs:,} runs and {results.leases:,} leases"
    return [
        Goal(
            text=f"{scale}: coordinator under {_MEMORY_GOAL_MB} MB",
            result=f"{results.coordinator_peak_mb:.1f} MB",
            is_met=results.coordinator_peak_mb < _MEMORY_GOAL_MB,
        ),
        Goal(
            text=f"{scale}: no call of the ledger takes {_WAIT_GOAL_MS} ms",
            result=f"{longest_ms:.1f} ms",
            is_met=longest_ms < _WAIT_GOAL_MS,
        ),
        Goal(
            text=f"{scale}: ready in {_START_GOAL_S} s",
            result=f"{results.ready_s:.2f} s",
            is_met=results.ready_s < _START_GOAL_S,
        ),
        Goal(
            text=f"{scale}: `oku runs` and `oku show` in {_COMMAND_GOAL_S} s",
            result=f"{commands_s:.2f} s",
            is_met=commands_s < _COMMAND_GOAL_S,
        ),
    ]
