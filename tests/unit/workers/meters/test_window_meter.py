import pytest

from oku_workers.meters.run_meter import UNDERFILLED_SHARE, WindowMeter

LOOK_S = 0.05
WINDOW = 100


class Worker:
    """A worker with a window of a hundred, whose clock a test sets."""

    def __init__(self, *, needs_answers: bool = True) -> None:
        self.now = 100.0
        self.meter = WindowMeter(self.now, needs_answers=needs_answers)
        self.meter.sample(self.now, WINDOW, WINDOW, 0, has_untaken=True)

    def work(
        self, seconds: float, *, in_flight: int = WINDOW, answers: int = 1, has_untaken: bool = True
    ) -> None:
        """Time goes by with so many in flight, and so many answers a sample."""
        for _ in range(round(seconds / LOOK_S)):
            self.now += LOOK_S
            self.meter.sample(self.now, WINDOW, in_flight, answers, has_untaken=has_untaken)

    def take(self) -> tuple[float, float]:
        """The seconds watched and underfilled so far, rounded."""
        watched_s, underfilled_s = self.meter.drain()
        return round(watched_s), round(underfilled_s)


def test_how_full_a_window_was() -> None:
    """As long as there is something to take, and answers come."""
    for share, is_full in [(1.0, True), (UNDERFILLED_SHARE, True), (UNDERFILLED_SHARE - 0.01, False)]:
        worker = Worker()
        worker.work(10.0, in_flight=round(share * WINDOW))
        watched_s, underfilled_s = worker.take()
        assert watched_s == pytest.approx(10, abs=1)
        assert underfilled_s == (0 if is_full else watched_s)
    # A window that changes is judged by what it was.
    worker = Worker()
    for window in range(100):
        worker.now += LOOK_S
        worker.meter.sample(worker.now, window, window, 1, has_untaken=True)
    watched_s, underfilled_s = worker.take()
    assert watched_s >= 4
    assert underfilled_s == 0
    # A short dip is averaged over its second. Half of the window for half a second is a quarter of it.
    worker = Worker()
    worker.work(3.0)
    worker.work(0.5, in_flight=WINDOW // 2)
    worker.work(3.5)
    watched_s, underfilled_s = worker.take()
    assert watched_s == pytest.approx(7, abs=1)
    assert 1 <= underfilled_s <= 2
    # A target that does not answer is not judged. Nobody can keep a window full by that.
    worker = Worker()
    worker.work(10.0, in_flight=10, answers=0)
    assert worker.take() == (0, 0)
    # Where a lack of work is seen no answer is needed.
    worker = Worker(needs_answers=False)
    worker.work(10.0, in_flight=50, answers=0)
    watched_s, underfilled_s = worker.take()
    assert watched_s == underfilled_s == pytest.approx(10, abs=1)


def test_gaps_are_judged_and_pauses_are_not() -> None:
    """Nothing was left to take."""
    worker = Worker()
    worker.work(5.5)
    worker.work(10.0, in_flight=1, has_untaken=False)
    assert worker.take() == (5, 0)
    # A gap is judged when more comes.
    worker = Worker()
    worker.work(5.0)
    worker.work(10.0, in_flight=1, has_untaken=False)
    worker.work(3.0, in_flight=0, answers=0, has_untaken=False)
    worker.take()
    worker.work(5.0)
    watched_s, underfilled_s = worker.take()
    assert watched_s == pytest.approx(18, abs=2)
    assert underfilled_s == pytest.approx(13, abs=2)
    # A pause is no gap. Nothing was to be sent while a run was stopped.
    worker = Worker()
    worker.work(5.0)
    worker.work(2.0, in_flight=1, has_untaken=False)
    worker.meter.stop()
    worker.work(60.0, in_flight=0, answers=0, has_untaken=False)
    worker.work(5.0)
    watched_s, underfilled_s = worker.take()
    assert watched_s == pytest.approx(10, abs=2)
    assert underfilled_s == 0
    # What was taken is not told again. Each second belongs to one lease.
    worker = Worker()
    worker.work(5.5)
    assert worker.take() == (5, 0)
    assert worker.take() == (0, 0)
