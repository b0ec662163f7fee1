import os
import resource
import time
from pathlib import Path

import pytest

from oku_core.process import resources
from oku_core.process.resources import (
    ControlGroup,
    find_memory_limit,
    list_control_groups,
    measure_busy_s,
    measure_peak_rss_mb,
    measure_rss_mb,
)


def test_control_groups_are_those_of_either_version(tmp_path: Path) -> None:
    """Such as macOS."""
    assert list_control_groups(tmp_path) == []
    # Control groups are those of either version. Their paths may have any bytes; other lines are ignored.
    file = tmp_path / "proc" / "self" / "cgroup"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"5:cpu,memory:/a:b\n1:name=systemd:/\nstray\n0::/c\xfc\xe2\x80\xa8d\n")
    assert list_control_groups(tmp_path) == [
        ControlGroup(frozenset({"cpu", "memory"}), "a:b"),
        ControlGroup(frozenset({"name=systemd"}), ""),
        ControlGroup(frozenset(), "c\udcfc\u2028d"),
    ]


def test_memory_is_in_megabytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Resident memory is at most its peak, and more than a bare interpreter needs."""
    ballast = bytearray(50_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    assert 50 < measure_rss_mb() < 2000
    assert measure_rss_mb() <= measure_peak_rss_mb() * 1.01 + 1
    # The peak replaces a missing current value. Outside Linux there is no other figure.
    monkeypatch.setattr(resources, "STATM", tmp_path / "missing")
    assert measure_rss_mb() == measure_peak_rss_mb()
    # The peak has two sources.
    more = b"x" * 30_000_000
    own_mb = measure_peak_rss_mb()
    monkeypatch.setattr(resources, "STATUS", tmp_path / "missing")
    assert len(more) / 1e6 < own_mb <= measure_peak_rss_mb() * 1.05
    (tmp_path / "missing").write_text("Name:\tpython\n")
    assert measure_peak_rss_mb() > len(more) / 1e6


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


def test_busy_is_what_ran_and_what_waited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is in seconds; on a system that does not tell of waiting, waiting counts as nothing."""
    schedstat = tmp_path / "schedstat"
    monkeypatch.setattr(time, "process_time", lambda: 2.0)
    assert measure_busy_s(schedstat) == 2.0
    schedstat.write_text("1000000000 250000000 7\n")
    assert measure_busy_s(schedstat) == 2.25
    schedstat.write_text("")
    assert measure_busy_s(schedstat) == 2.0


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="this system does not tell")
def test_the_system_tells_of_waiting() -> None:
    """It does so in a form that is understood: waiting only grows."""
    first = measure_busy_s()
    assert 0 < time.process_time() <= first <= measure_busy_s()


UNLIMITED = resource.RLIM_INFINITY


class Limits:
    """The limits of a process on a system that allows at most `most` open files."""

    def __init__(self, soft: int, hard: int, most: int) -> None:
        self.soft, self.hard, self.most = soft, hard, most
        self.is_set = False

    def get(self, _: int) -> tuple[int, int]:
        """Stand in for `resource.getrlimit`."""
        return self.soft, self.hard

    def set(self, _: int, limits: tuple[int, int]) -> None:
        """Stand in for `resource.setrlimit`."""
        if limits[0] > self.most:
            raise ValueError("not here")
        assert limits[1] == self.hard
        self.soft, self.is_set = limits[0], True


def set_up(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, most: int = 1 << 62) -> Limits:
    """Replace the limits of this process."""
    limits = Limits(soft, hard, most)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    return limits


def test_the_soft_limit_is_raised_where_it_has_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised to the hard limit, up to a maximum."""
    for soft, hard, allowed in [
        (1024, 20_000, 20_000),
        (1024, UNLIMITED, 1 << 20),
        (1024, 1 << 30, 1 << 20),
        (256, 257, 257),
    ]:
        limits = set_up(monkeypatch, soft, hard)
        assert resources.raise_open_files() == allowed
        assert limits.soft == allowed
        assert resources.read_open_files() == allowed
    for soft, hard, allowed in [
        (4096, 4096, 4096),
        (1 << 30, 1 << 30, 1 << 20),
        (UNLIMITED, UNLIMITED, 1 << 20),
    ]:
        # A limit that suffices stays.
        limits = set_up(monkeypatch, soft, hard)
        assert resources.raise_open_files() == allowed
        assert not limits.is_set


def test_a_system_may_allow_less_than_it_says(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then a lower limit is requested."""
    limits = set_up(monkeypatch, 256, UNLIMITED, most=300_000)
    assert resources.raise_open_files() == 1 << 18
    assert limits.soft == 1 << 18
    assert "a limit of 1048576 open files is refused" in caplog.text
    # A limit that cannot be raised stays. The process starts all the same.
    limits = set_up(monkeypatch, 1024, 4096, most=0)
    assert resources.raise_open_files() == 1024
    assert not limits.is_set
    assert "a limit of 4096 open files is refused" in caplog.text
