"""The summary of a run with a threshold of each verdict."""

from tests.kit.runs.summaries import build_summary

from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Engine
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.latency_summary import LatencySummary
from oku_core.summary.request_summary import OutcomeCounts
from oku_core.summary.summary import Summary
from oku_core.summary.validity import Flag, Validity
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict


def build_threshold_run() -> Summary:
    """A completed run of 100 requests."""
    return build_summary(
        run="r1", name="shop", state=RunState.COMPLETED, engine=Engine.AIOHTTP,
        requests=100, accounted=100, resent_at_most=3,
        outcomes=OutcomeCounts(
            ok=99, unexpected_status=0, timeout=1, connect_error=0, disconnected=0, protocol_error=0
        ),
        statuses={"200": 99}, bytes_received=1, started_at="2026-02-01T17:05:12.250Z", ended_at=None,
        active_s=2.0, throughput_rps=50.0, latency_ms=LatencySummary(p99=1200.0, max=1200.0),
        workers=[], servers=None,
        verdict=ThresholdVerdict.FAILED,
        thresholds=[
            ThresholdSummary(
                expression="ok >= 99%", verdict=ThresholdVerdict.PASSED, value=0.99, limit=0.99,
                unit=FigureUnit.SHARE, holds=True, against=1, allowed=1,
            ),
            ThresholdSummary(
                expression="p99 < 1s", verdict=ThresholdVerdict.FAILED, value=1200.0, limit=1000.0,
                unit=FigureUnit.MS, holds=False, against=2, allowed=1,
            ),
            ThresholdSummary(
                expression="rate > 1/s over 1m", verdict=ThresholdVerdict.UNDECIDED, limit=1.0,
                unit=FigureUnit.PER_SECOND, detail="the run had no 60 s in a row that could be judged",
            ),
        ],
        validity=[Validity(flag=Flag.RESENT, detail="some | more", requests=3)],
    )  # fmt: skip
