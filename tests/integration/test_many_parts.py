"""A real run of many targets in many stages: neither its memory nor its summary grows with their product."""

from pathlib import Path

import pytest

from oku_benchmarks.cases.parts import Size, play
from oku_benchmarks.stacks.checkout import Checkout

pytestmark = pytest.mark.alone

_MOST_MB = 130.0
"""A coordinator takes 70 MB; with 570 kB for each part it took 500 MB here."""
_LONGEST_SUMMARY_S = 2.0
_MOST_GAP_CPU_MS = 100.0
"""CPU time, so that it holds on a machine that does much else as well; it takes some 20 ms."""


def test_a_run_of_many_parts_takes_little_memory_and_blocks_nobody(tmp_path: Path) -> None:
    """30 targets in 12 stages have 360 parts, each with three distributions."""
    played = play(Checkout(), tmp_path / "stack", Size(targets=30, stages=12, stage_s=0.5, rate=400))
    assert played.requests > 2000
    assert max(played.peak_mb, played.restarted_peak_mb) < _MOST_MB
    assert max(played.gap_cpu_ms, played.restarted_gap_cpu_ms) < _MOST_GAP_CPU_MS
    seconds = (played.live_summary_s, played.end_summary_s, played.restarted_summary_s)
    assert max(seconds) < _LONGEST_SUMMARY_S
