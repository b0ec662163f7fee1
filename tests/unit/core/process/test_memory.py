import os
from pathlib import Path

import pytest

from oku_core.process import memory
from oku_core.process.memory import find_memory_limit, measure_peak_rss_mb, measure_rss_mb


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


def build_groups(root: Path, own: str, limits: dict[str, str]) -> None:
    """Control groups with these limits; this process is in one of them."""
    for name, text in {
        "proc/self/cgroup": own,
        **{f"sys/fs/cgroup/{n}": t for n, t in limits.items()},
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(os.fsencode(text))


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": "1073741824\n"}, 1 << 30),
        ("0::/a/b\n", {"a/memory.max": "1000000\n", "a/b/memory.max": "max\n", "memory.max": "max\n"}, 10**6),
        ("0::/a/b\n", {"a/memory.max": "2000000\n", "a/b/memory.max": "1000000\n"}, 10**6),
        ("0::/../outside\n", {"memory.max": "1000000\n"}, 10**6),
        ("3:memory:/docker/x\n", {"memory/memory.limit_in_bytes": "1000000\n"}, 10**6),
        ("0::/a\x85\udcfc\n", {"a\x85\udcfc/memory.max": "1000000\n"}, 10**6),
    ],
    ids=["container", "around", "own", "outside", "version 1", "name in any bytes"],
)
def test_a_control_group_limits_memory(
    tmp_path: Path, own: str, limits: dict[str, str], expected: int
) -> None:
    """Its own, or one around it; a container sees its own at the top."""
    build_groups(tmp_path, own, limits)
    assert find_memory_limit(tmp_path) == expected


def test_the_machine_limits_memory(tmp_path: Path) -> None:
    """Where no control group says less, or there is none."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert find_memory_limit(tmp_path) == whole
    build_groups(tmp_path, "0::/\n", {"memory.max": "9223372036854771712\n"})
    assert find_memory_limit(tmp_path) == whole
