import pytest

from oku_workers.meters.run_meter import RunMeter

LOOK_S = 0.05
WINDOW = 100


class Worker:
    """A worker with one run, whose clock a test sets."""

    def __init__(self, window: int = WINDOW) -> None:
        self.now = 100.0
        self.window = window
        self.meter = RunMeter(self.now)

    def work(self, seconds: float, rate: float, *, in_flight: int = 100, has_work: bool = True) -> None:
        """Answers come at a rate, and as much is taken."""
        for _ in range(round(seconds / LOOK_S)):
            self.now += LOOK_S
            new = round(rate * LOOK_S)
            self.meter.sample(self.now, self.window, new, new, in_flight, has_work=has_work)

    def wait(self, seconds: float, *, in_flight: int = 0) -> None:
        """Nothing is to be taken, and nothing ends."""
        self.work(seconds, 0.0, in_flight=in_flight, has_work=False)


def test_a_rate_is_unknown_before_the_first_answer() -> None:
    """It is 0 then, whatever was taken."""
    worker = Worker()
    worker.meter.sample(101.0, WINDOW, 100, 0, 100, has_work=True)
    assert (worker.meter.rate_rps, worker.meter.taken) == (0.0, 100)
    # A rate is what ends in a second. It is known in the first second.
    worker = Worker()
    worker.work(0.5, 2000.0)
    assert worker.meter.rate_rps == pytest.approx(2000.0)
    assert worker.meter.taken == 1000
    # A rate that changes is known soon.
    worker = Worker()
    worker.work(60.0, 2000.0)
    worker.work(6.0, 100.0)
    assert worker.meter.rate_rps == pytest.approx(100.0)


def test_work_that_counts_and_time_that_does_not() -> None:
    """A worker that waits for a lease, or for a last slow answer, is as fast as before."""
    worker = Worker()
    worker.work(3.0, 2000.0)
    worker.wait(20.0, in_flight=1)
    worker.wait(20.0)
    worker.work(3.0, 2000.0)
    assert worker.meter.rate_rps == pytest.approx(2000.0, rel=0.05)
    # A worker that waits for a full window is at work.
    worker = Worker()
    worker.meter.sample(100.05, WINDOW, 100, 0, 100, has_work=False)
    worker.now = 100.05
    worker.wait(4.95, in_flight=100)
    worker.meter.sample(worker.now, WINDOW, 0, 100, 0, has_work=False)
    assert worker.meter.rate_rps == pytest.approx(100 / 5.0, rel=0.02)
    # Work that is over between two looks counts. A small lease may come and go within a sample.
    worker = Worker()
    worker.wait(1.0)
    for _ in range(10):
        worker.now += LOOK_S
        worker.meter.sample(worker.now, WINDOW, 400, 400, 0, has_work=False)
    assert worker.meter.rate_rps == pytest.approx(8000.0, rel=0.2)


def test_answers_in_step_have_the_rate_of_their_steps() -> None:
    """A hundred at a time, each taking half a minute: the rate is neither 0 nor that of the burst."""
    worker = Worker()
    worker.meter.sample(worker.now, WINDOW, 100, 0, 100, has_work=True)
    rates = []
    for _ in range(6):
        worker.work(30.0 - LOOK_S, 0.0)
        rates.append(worker.meter.rate_rps)
        worker.now += LOOK_S
        worker.meter.sample(worker.now, WINDOW, 100, 100, 100, has_work=True)
        rates.append(worker.meter.rate_rps)
    assert rates[0] == 0.0
    assert all(1.5 < rate < 7.0 for rate in rates[1:]), rates
