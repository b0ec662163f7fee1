from oku_core.process.clock import SteadyClock


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


def test_it_tells_unix_time() -> None:
    """As long as nobody sets the clock, it shows Unix time."""
    machine = _Machine()
    clock = machine.build_clock()
    machine.pass_time(12.5)
    assert clock.now() == machine.wall


def test_a_step_changes_no_duration() -> None:
    """The difference of two readings is the elapsed time, whatever happens to the wall clock."""
    machine = _Machine()
    clock = machine.build_clock()
    before = clock.now()
    machine.wall += 3600
    machine.pass_time(2)
    machine.wall -= 7200
    machine.pass_time(3)
    assert clock.now() - before == 5


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


def test_a_slewed_clock_is_not_a_step() -> None:
    """Gradual corrections by NTP stay below the smallest step for a long time, and then add up to one."""
    machine = _Machine()
    clock = machine.build_clock()
    machine.wall += 0.9
    assert clock.find_step() is None
    machine.wall += 0.9
    assert clock.find_step() is not None


def test_after_anchoring_it_follows_the_wall_clock() -> None:
    """After a step, and while nothing is measured, it can adopt the time of the machine."""
    machine = _Machine()
    clock = machine.build_clock()
    machine.wall += 3600
    clock.find_step()
    clock.anchor()
    assert clock.now() == machine.wall
    assert clock.find_step() is None


def test_a_clock_goes_on_with_the_offset_of_another_process() -> None:
    """To the nanosecond; the wall clock was set since, and that is a step."""
    machine = _Machine()
    before = machine.build_clock()
    assert before.offset_ns == 1_699_999_950_000_000_000
    machine.pass_time(30)
    machine.wall += 5
    after = machine.build_clock()
    after.adopt(before.offset_ns)
    assert after.offset_ns == before.offset_ns
    assert after.now() == before.now()
    assert after.find_step() == 5
