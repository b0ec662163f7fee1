import pytest

from oku_core.messaging.order import ClockNotice
from oku_workers.timing.coordinator_clock import ClockSample, CoordinatorClock

KERNEL, OFFSET_NS = "boot time:[1]", 1_700_000_000_123_456_789
MS, S = 1_000_000, 1_000_000_000


def build_clock(kernel: str = KERNEL) -> CoordinatorClock:
    """Of a machine that booted 50 s ago."""
    return CoordinatorClock(kernel, lambda: 50_000_000_000)


def test_the_kernel_and_the_newest_word_tell_the_clock() -> None:
    """As soon as it is told the offset."""
    clock = build_clock()
    clock.set_notice(ClockNotice(kernel=KERNEL, offset_ns=OFFSET_NS))
    assert clock.bound_s == 0.0
    assert clock.now() == 1_700_000_050.1234567
    assert abs(clock.to_local_ns(clock.now()) - 50_000_000_000) < 1000
    for ours, theirs in [("boot time:[1]", "boot time:[2]"), ("a", "b"), ("", "")]:
        # A worker with another monotonic clock knows nothing by the offset.
        clock = build_clock(ours)
        clock.set_notice(ClockNotice(kernel=theirs, offset_ns=OFFSET_NS))
        assert not clock.is_known
        assert clock.bound_s is None
        with pytest.raises(LookupError):
            clock.to_local_ns(0.0)
    # The newest word counts. A coordinator that has nothing to measure follows the clock of its machine.
    clock = build_clock()
    for seconds in (3, 7):
        clock.set_notice(ClockNotice(kernel=KERNEL, offset_ns=seconds * 1_000_000_000))
    assert clock.now() == 57.0
    assert clock.to_local_ns(60.0) == 53_000_000_000


class Far:
    """A worker whose machine is not the coordinator's, whose clock is 1000 s ahead."""

    def __init__(self) -> None:
        self.now_ns = 50 * S
        self.clock = CoordinatorClock("here", lambda: self.now_ns)
        self.tell()

    def tell(self, kernel: str = "there", offset_ns: int = 0) -> None:
        """The coordinator says what its clock is."""
        self.clock.set_notice(ClockNotice(kernel=kernel, offset_ns=offset_ns, host="oku-clock", port=8700))

    def ask(self, ahead_ns: int, *, took_ns: int = 0, kernel: str = "there") -> None:
        """Ask the coordinator."""
        asked_ns = self.now_ns
        self.now_ns += took_ns
        shown_ns = asked_ns + took_ns // 2 + ahead_ns
        self.clock.add_sample(kernel, ClockSample(asked_ns, shown_ns, self.now_ns))

    @property
    def offset_ns(self) -> int:
        """How far the clock is ahead."""
        return -self.clock.to_local_ns(0.0)


def test_a_worker_elsewhere_asks() -> None:
    """It knows the clock when it has an answer, to half of the round trip, and less well as time passes."""
    far = Far()
    assert far.clock.must_ask
    assert not far.clock.is_known
    far.tell(offset_ns=7 * S)
    far.ask(1000 * S, took_ns=2 * MS)
    assert far.offset_ns == 1007 * S
    assert far.clock.bound_s == pytest.approx(0.001, abs=1e-6)
    assert far.clock.now() == pytest.approx(1057.002)
    far.now_ns += 10 * S
    assert far.clock.bound_s == pytest.approx(0.003, abs=1e-6)
    # A worker on the same machine asks nobody. Nor does one to which nobody was named that answers.
    clock = build_clock()
    clock.set_notice(ClockNotice(kernel=KERNEL, offset_ns=1, host="oku-clock", port=8700))
    assert not clock.must_ask
    clock.set_notice(ClockNotice(kernel="there", offset_ns=1))
    assert not clock.must_ask
    # A better answer moves the clock slowly. The bound tells of the distance meanwhile.
    far = Far()
    far.ask(1000 * S, took_ns=20 * MS)
    far.ask(1000 * S + 5 * MS, took_ns=2 * MS)
    assert far.offset_ns == 1000 * S
    assert far.clock.bound_s == pytest.approx(0.006, abs=1e-4)
    far.now_ns += 20 * S
    assert far.offset_ns == 1000 * S + 5 * MS
    assert far.clock.bound_s == pytest.approx(0.005, abs=1e-4)


def test_a_clock_that_was_set_is_followed_at_once() -> None:
    """The coordinator does that while no run is active, and what its machine has told still holds."""
    far = Far()
    far.ask(1000 * S)
    far.tell(offset_ns=3 * MS)
    assert far.offset_ns == 1000 * S + 3 * MS
    # When the coordinator moves its clock goes on as it was.
    far = Far()
    far.ask(1000 * S)
    far.tell("elsewhere", offset_ns=400 * S)
    far.ask(1000 * S)
    assert far.offset_ns == 1000 * S
    assert far.clock.bound_s is None
    far.ask(600 * S + 2 * MS, kernel="elsewhere")
    assert far.offset_ns == 1000 * S
    assert far.clock.bound_s == pytest.approx(0.002, abs=1e-4)
    far.now_ns += 4 * S
    assert far.offset_ns == 1000 * S + 2 * MS
    # A coordinator that moves to this machine is known exactly. Once its clock was approached.
    far = Far()
    far.ask(1000 * S)
    far.tell("here", offset_ns=1000 * S + 1 * MS)
    assert far.clock.bound_s == pytest.approx(0.001)
    far.now_ns += 2 * S
    assert far.clock.bound_s == 0.0


def test_whoever_asks_is_told_of_each_notice() -> None:
    """Another address may have been named."""
    far = Far()
    heard: list[ClockNotice | None] = []

    class Listener:
        def on_notice(self) -> None:
            heard.append(far.clock.notice)

    far.clock.attach(Listener())
    far.tell("elsewhere")
    assert [notice and notice.kernel for notice in heard] == ["elsewhere"]
