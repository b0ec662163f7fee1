"""One long run at full speed: memory of worker and coordinator, and the coordinator's share of a core."""

from pathlib import Path

import msgspec

from oku_benchmarks.measuring.observer import cut_window, find_peak_mb
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.delay_server import DelayServer
from oku_benchmarks.turns.oku_turn import COORDINATOR, WORKER, Load, open_data_dir, play_oku
from oku_benchmarks.turns.turn import Stage

CONCURRENCY = 1000


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """One run; the rate and the shares of a core are those between the two looks."""

    concurrency: int
    early_requests: int
    late_requests: int
    rate_rps: float
    worker_early_mb: float
    worker_late_mb: float
    worker_peak_mb: float
    coordinator_peak_mb: float
    coordinator_cpu_share: float
    cpu_shares: dict[str, float]
    """Of one core, for every process of the stack."""
    peaks_mb: dict[str, float]
    """Of every process of the stack."""


def measure(plan: Plan, folder: Path) -> Results:
    """One run with one worker."""
    early, late = plan.memory_requests
    with DelayServer(folder) as target:
        stage = Stage(target, folder, timeout_s=600)
        with open_data_dir(stage.folder) as data_dir:
            turn = play_oku(stage, data_dir, Load(requests=late, concurrency=CONCURRENCY)).turn
    window = cut_window(turn.samples, early, late)
    begin, end = window.begin.vitals, window.end.vitals
    names = sorted(begin.keys() & end.keys())
    shares = {name: round(window.measure_cpu_s(name) / window.length_s, 4) for name in names}
    peaks = {name: find_peak_mb(turn.samples, name) for name in names}
    results = Results(
        concurrency=CONCURRENCY,
        early_requests=early,
        late_requests=late,
        rate_rps=round(window.rate_rps, 1),
        worker_early_mb=round(begin[WORKER].rss_mb, 1),
        worker_late_mb=round(end[WORKER].rss_mb, 1),
        worker_peak_mb=peaks[WORKER],
        coordinator_peak_mb=peaks[COORDINATOR],
        coordinator_cpu_share=shares[COORDINATOR],
        cpu_shares=shares,
        peaks_mb=peaks,
    )
    log(
        f"  {results.rate_rps:,.0f}/s, worker {results.worker_early_mb} then {results.worker_late_mb} MB,"
        f" coordinator {results.coordinator_peak_mb} MB and {results.coordinator_cpu_share:.1%} of a core"
    )
    return results
