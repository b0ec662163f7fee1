"""Runs to compare: drawn seconds, and a summary that agrees with them."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.kit.outcomes import make_counts
from tests.kit.runs.seconds import draw_seconds

from oku_cli.comparison.run_seconds import RunSeconds
from oku_core.accounting.outcome import build_outcome_counts
from oku_core.summary.request_summary import OutcomeCounts
from oku_core.summary.summary import Summary

SPEC: Mapping[str, Any] = {
    "url": ["http://127.0.0.1/"],
    "method": "GET",
    "requests": 6000,
    "engine": "aiohttp",
}

MakeRun = Callable[..., RunSeconds]


def build_maker(make_summary: Callable[..., Summary]) -> MakeRun:
    """Build what makes a run of drawn latencies; `make_summary` takes a histogram and changes."""

    def make(
        seed: int = 0,
        *,
        median_us: float = 20_000,
        seconds: int = 60,
        spec: Mapping[str, Any] = SPEC,
        **changes: Any,
    ) -> RunSeconds:
        samples, whole = draw_seconds(seconds, seed=seed, median_us=median_us, wave=0.02)
        fields = {
            "run": f"r{seed}",
            "name": "",
            "requests": whole.total,
            "accounted": whole.total,
            "outcomes": OutcomeCounts(**build_outcome_counts(make_counts(whole.total))),
            "throughput_rps": 100.0,
        }
        summary = make_summary(whole, **fields | changes)
        return RunSeconds(summary=summary, spec=spec, samples=samples)

    return make
