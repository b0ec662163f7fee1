"""The section of the benchmark `parts`: a run of many targets and many stages."""

from oku_benchmarks.cases.parts import DELAY, WORKERS, Played, Results
from oku_benchmarks.sections.section import Goal, Section, build_table, fill_text

_PEAK_MB_GOAL, _GAP_MS_GOAL, _SUMMARY_S_GOAL = 400.0, 100.0, 1.0
_TEXT = """\
Runs with a rate, {workers} workers and a delay server that answers after `{delay}`, all on this machine. An
account has a part for each target and stage, with three distributions. Gaps are those of the coordinator's
event loop, measured in it; a summary is one `GET /api/runs/RUN` by another process, which asks every two
seconds, and for `/metrics` as well. "Anew" is a coordinator that was started with the ledger of the run at
rest. The last table has the size of the ledger and of the summary's JSON, the memory of the other processes,
and how long commands take at that coordinator.

{table}

{commands}
"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    rows = [
        [
            _name(played),
            f"{played.requests:,}",
            f"{played.peak_mb:,.0f} MB",
            f"{played.gap_ms:,.0f} ms",
            f"{played.live_summary_s:.2f} s",
            f"{played.end_summary_s:.2f} s",
            f"{played.scrape_s:.2f} s",
            f"{played.restarted_peak_mb:,.0f} MB",
            f"{played.restarted_gap_ms:,.0f} ms",
            f"{played.restarted_summary_s:.2f} s",
        ]
        for played in results.runs
    ]
    others = [
        [
            _name(played),
            f"{played.ledger_mb:,.1f} MB",
            f"{played.summary_mb:,.2f} MB",
            f"{played.worker_mb:,.0f} MB",
            f"{played.command_mb:,.0f} MB",
            f"{played.show_s:.1f} s, {played.show_mb:,.0f} MB",
            f"{played.report_s:.1f} s, {played.report_mb:,.0f} MB",
        ]
        for played in results.runs
    ]
    head = [
        "targets, stages", "requests", "peak memory", "longest gap", "summary under way", "at the end",
        "`/metrics`", "anew: peak memory", "longest gap", "first summary",
    ]  # fmt: skip
    return Section(
        title="Many targets and many stages",
        text=fill_text(
            _TEXT,
            workers=len(WORKERS),
            delay=DELAY,
            table=build_table(head, rows),
            commands=build_table(
                [
                    "targets, stages",
                    "ledger",
                    "summary",
                    "worker",
                    "`oku run`",
                    "`oku show`",
                    "`oku report`",
                ],
                others,
            ),
        ),
        goals=_list_goals(results.runs[-1]),
        packages=("httptools", "uvloop", "celery", "valkey"),
    )


def _name(played: Played) -> str:
    before = "" if played.commit == "now" else f", {played.commit}"
    return f"{played.size.targets}, {played.size.stages}{before}"


def _list_goals(played: Played) -> list[Goal]:
    longest_s = max(played.live_summary_s, played.end_summary_s, played.restarted_summary_s)
    gap_ms = max(played.gap_ms, played.restarted_gap_ms)
    peak_mb = max(played.peak_mb, played.restarted_peak_mb)
    what = f"{played.size.targets} targets in {played.size.stages} stages:"
    return [
        Goal(
            text=f"{what} memory of the coordinator below {_PEAK_MB_GOAL:.0f} MB",
            result=f"{peak_mb:,.0f} MB",
            is_met=peak_mb < _PEAK_MB_GOAL,
        ),
        Goal(
            text=f"{what} no gap of its event loop over {_GAP_MS_GOAL:.0f} ms",
            result=f"{gap_ms:,.0f} ms",
            is_met=gap_ms <= _GAP_MS_GOAL,
        ),
        Goal(
            text=f"{what} a summary in less than {_SUMMARY_S_GOAL:.0f} s",
            result=f"{longest_s:.2f} s",
            is_met=longest_s < _SUMMARY_S_GOAL,
        ),
    ]
