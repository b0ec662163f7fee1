from oku_core.process.clock import SteadyClock


class _Machine:
    """The two clocks of a machine."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000.0
        self.monotonic = 50.0

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def build_clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.monotonic)


def test_it_tells_unix_time() -> None:
    """Where nobody sets the clock, it is Unix time."""
    machine = _Machine()
    clock = machine.build_clock()
    machine.pass_time(12.5)
    assert clock.now() == machine.wall


def test_a_step_changes_no_duration() -> None:
    """Between two readings lies the time that has passed, whatever was done to the wall clock."""
    machine = _Machine()
    clock = machine.build_clock()
    before = clock.now()
    machine.wall += 3600
    machine.pass_time(2)
    machine.wall -= 7200
    machine.pass_time(3)
    assert clock.now() - before == 5


def test_a_step_is_found_once() -> None:
    """A look says by how much the clock was set since the look before."""
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


def test_a_slewed_clock_is_no_step() -> None:
    """What NTP corrects little by little stays below the smallest step for a long time, and adds up."""
    machine = _Machine()
    clock = machine.build_clock()
    machine.wall += 0.9
    assert clock.find_step() is None
    machine.wall += 0.9
    assert clock.find_step() is not None


def test_anchored_anew_it_follows_the_wall_clock() -> None:
    """After a step, with nothing under way, it can tell the time that the machine tells."""
    machine = _Machine()
    clock = machine.build_clock()
    machine.wall += 3600
    clock.find_step()
    clock.anchor()
    assert clock.now() == machine.wall
    assert clock.find_step() is None
