from pathlib import Path

import pytest

from oku_core.process import memory
from oku_core.process.memory import measure_peak_rss_mb, measure_rss_mb


def test_memory_is_in_megabytes() -> None:
    """Resident memory is at most its peak, and more than a bare interpreter needs."""
    ballast = bytearray(50_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    assert 50 < measure_rss_mb() < 2000
    assert measure_rss_mb() <= measure_peak_rss_mb() * 1.01 + 1


def test_the_peak_replaces_a_missing_current_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Outside Linux there is no other figure."""
    monkeypatch.setattr(memory, "STATM", tmp_path / "missing")
    assert measure_rss_mb() == measure_peak_rss_mb()


def test_the_peak_has_two_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Linux reports it for the process itself; elsewhere getrusage does. Here they differ by about a page."""
    ballast = b"x" * 30_000_000
    own_mb = measure_peak_rss_mb()
    monkeypatch.setattr(memory, "STATUS", tmp_path / "missing")
    assert len(ballast) / 1e6 < own_mb <= measure_peak_rss_mb() * 1.05
    (tmp_path / "missing").write_text("Name:\tpython\n")
    assert measure_peak_rss_mb() > len(ballast) / 1e6
