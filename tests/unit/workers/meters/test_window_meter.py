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


@pytest.mark.parametrize(
    ("share", "is_full"), [(1.0, True), (UNDERFILLED_SHARE, True), (UNDERFILLED_SHARE - 0.01, False)]
)
def test_a_second_with_less_of_the_window_is_underfilled(share: float, *, is_full: bool) -> None:
    """As long as there is something to take, and answers come."""
    worker = Worker()
    worker.work(10.0, in_flight=round(share * WINDOW))
    watched_s, underfilled_s = worker.take()
    assert watched_s == pytest.approx(10, abs=1)
    assert underfilled_s == (0 if is_full else watched_s)


def test_a_window_that_changes_is_judged_by_what_it_was() -> None:
    """While it grows, as many may be in flight as it has at each time."""
    worker = Worker()
    for window in range(100):
        worker.now += LOOK_S
        worker.meter.sample(worker.now, window, window, 1, has_untaken=True)
    watched_s, underfilled_s = worker.take()
    assert watched_s >= 4
    assert underfilled_s == 0


def test_a_short_dip_is_averaged_over_its_second() -> None:
    """Half of the window for half a second is a quarter of it."""
    worker = Worker()
    worker.work(3.0)
    worker.work(0.5, in_flight=WINDOW // 2)
    worker.work(3.5)
    watched_s, underfilled_s = worker.take()
    assert watched_s == pytest.approx(7, abs=1)
    assert 1 <= underfilled_s <= 2


def test_a_target_that_does_not_answer_is_not_judged() -> None:
    """Nobody can keep a window full by that."""
    worker = Worker()
    worker.work(10.0, in_flight=10, answers=0)
    assert worker.take() == (0, 0)


def test_where_a_lack_of_work_is_seen_no_answer_is_needed() -> None:
    """Users that wait for an iteration lack it, whatever the others do meanwhile."""
    worker = Worker(needs_answers=False)
    worker.work(10.0, in_flight=50, answers=0)
    watched_s, underfilled_s = worker.take()
    assert watched_s == underfilled_s == pytest.approx(10, abs=1)


def test_the_last_answers_of_a_run_are_not_judged() -> None:
    """Nothing was left to take."""
    worker = Worker()
    worker.work(5.5)
    worker.work(10.0, in_flight=1, has_untaken=False)
    assert worker.take() == (5, 0)


def test_a_gap_is_judged_when_more_comes() -> None:
    """Somebody had it, or it was pending: the window was not full although there was something to send."""
    worker = Worker()
    worker.work(5.0)
    worker.work(10.0, in_flight=1, has_untaken=False)
    worker.work(3.0, in_flight=0, answers=0, has_untaken=False)
    worker.take()
    worker.work(5.0)
    watched_s, underfilled_s = worker.take()
    assert watched_s == pytest.approx(18, abs=2)
    assert underfilled_s == pytest.approx(13, abs=2)


def test_a_pause_is_no_gap() -> None:
    """Nothing was to be sent while a run was stopped."""
    worker = Worker()
    worker.work(5.0)
    worker.work(2.0, in_flight=1, has_untaken=False)
    worker.meter.stop()
    worker.work(60.0, in_flight=0, answers=0, has_untaken=False)
    worker.work(5.0)
    watched_s, underfilled_s = worker.take()
    assert watched_s == pytest.approx(10, abs=2)
    assert underfilled_s == 0


def test_what_was_taken_is_not_told_again() -> None:
    """Each second belongs to one lease."""
    worker = Worker()
    worker.work(5.5)
    assert worker.take() == (5, 0)
    assert worker.take() == (0, 0)
