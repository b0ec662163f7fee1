from pathlib import Path

import pytest

from oku_core.process import clock
from oku_core.process.clock import SteadyClock, fetch_kernel_id


class _Machine:
    """The wall clock and the monotonic clock of a machine."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000.0
        self.monotonic = 50.0

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def build_clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.monotonic)


def test_a_step_is_found_once() -> None:
    """Each call tells by how much the clock was set since the previous one."""
    machine = _Machine()
    clock = machine.build_clock()
    assert clock.find_step() is None
    machine.wall += 3600
    assert clock.find_step() == 3600
    assert clock.find_step() is None
    assert clock.wall_ahead_s == 3600
    machine.wall -= 3600
    assert clock.find_step() == -3600
    assert clock.wall_ahead_s == 0
    # A slewed clock is not a step.
    machine = _Machine()
    clock = machine.build_clock()
    machine.wall += 0.9
    assert clock.find_step() is None
    machine.wall += 0.9
    assert clock.find_step() is not None
    # After anchoring it follows the wall clock.
    machine = _Machine()
    clock = machine.build_clock()
    machine.wall += 3600
    clock.find_step()
    clock.anchor()
    assert clock.now() == machine.wall
    assert clock.find_step() is None


def test_no_step_of_the_wall_clock_changes_a_duration() -> None:
    """As long as nobody sets the clock, it shows Unix time."""
    machine = _Machine()
    clock = machine.build_clock()
    machine.pass_time(12.5)
    assert clock.now() == machine.wall
    # A step changes no duration.
    machine = _Machine()
    clock = machine.build_clock()
    before = clock.now()
    machine.wall += 3600
    machine.pass_time(2)
    machine.wall -= 7200
    machine.pass_time(3)
    assert clock.now() - before == 5
    # A clock goes on with the offset of another process.
    machine = _Machine()
    earlier = machine.build_clock()
    assert earlier.offset_ns == 1_699_999_950_000_000_000
    machine.pass_time(30)
    machine.wall += 5
    later = machine.build_clock()
    later.adopt(earlier.offset_ns)
    assert later.offset_ns == earlier.offset_ns
    assert later.now() == earlier.now()
    assert later.find_step() == 5


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a kernel says of itself."""
    (tmp_path / "boot_id").write_text("5ff4\n")
    (tmp_path / "time").symlink_to("time:[4026531834]")
    monkeypatch.setattr(clock, "_BOOT_ID", tmp_path / "boot_id")
    monkeypatch.setattr(clock, "_TIME_NAMESPACE", tmp_path / "time")
    return tmp_path


def test_it_is_the_same_for_all_processes_of_a_machine() -> None:
    """And not empty."""
    assert fetch_kernel_id()
    assert fetch_kernel_id() == fetch_kernel_id()


def test_it_names_the_boot_and_the_time_namespace(proc: Path) -> None:
    """Either makes another monotonic clock."""
    assert fetch_kernel_id() == "5ff4 time:[4026531834]"
    (proc / "boot_id").write_text("6aa0\n")
    assert fetch_kernel_id() == "6aa0 time:[4026531834]"


def test_an_old_kernel_has_no_time_namespaces(proc: Path) -> None:
    """Its boot is enough."""
    (proc / "time").unlink()
    assert fetch_kernel_id() == "5ff4"
    # A kernel that hides its boot has no id. Nobody is known to share its clock.
    (proc / "boot_id").unlink()
    assert not fetch_kernel_id()
