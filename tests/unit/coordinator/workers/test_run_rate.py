import pytest

from oku_coordinator.workers.worker_state import RunRate


def test_the_first_interval_does_not_count() -> None:
    """The worker may have begun at its very end."""
    rate = RunRate("r1")
    rate.record_interval(10, 1.0, 100)
    assert rate.rate_rps is None
    rate.record_interval(1000, 1.0, 100)
    assert rate.rate_rps == 1000


def test_a_worker_that_waits_for_a_schedule_has_not_begun() -> None:
    """It has leases before anything is due; the interval in which it begins may be idle for the most part."""
    rate = RunRate("r1")
    for ended, in_flight in ((0, 0), (0, 0), (5, 100), (1000, 100)):
        rate.record_interval(ended, 1.0, in_flight)
    assert (rate.rate_rps, rate.mean_in_flight) == (1000, 100)


def test_a_rate_follows_a_change_within_seconds() -> None:
    """It is a mean over about ten of them."""
    rate = RunRate("r1")
    for _ in range(60):
        rate.record_interval(1000, 1.0, 100)
    for _ in range(20):
        rate.record_interval(100, 1.0, 100)
    assert rate.rate_rps is not None
    assert 100 < rate.rate_rps < 250


def test_how_many_are_in_flight_is_a_mean_over_the_same_time() -> None:
    """By Little's law, that divided by the rate is how long a request takes."""
    rate = RunRate("r1")
    assert rate.mean_in_flight == 0
    for in_flight in (1000, *(90, 110) * 30):
        rate.record_interval(1000, 1.0, in_flight)
    assert rate.mean_in_flight == pytest.approx(100, rel=0.02)


def test_answers_in_bursts_do_not_look_like_a_high_rate() -> None:
    """A hundred requests in step take thirty seconds: that is 3.3/s at every moment, or less at first."""
    rate = RunRate("r1")
    rates = []
    for second in range(300):
        rate.record_interval(100 if second and second % 30 == 0 else 0, 1.0, 100)
        rates.append(rate.rate_rps)
    assert rates[29] is None
    assert all(known is not None and 1.5 < known < 5 for known in rates[30:])
    assert rates[-1] == pytest.approx(3.3, rel=0.35)


def test_a_silence_bounds_the_rate() -> None:
    """A window that was not answered for ten seconds cannot be worth more than a tenth of it each second."""
    rate = RunRate("r1")
    bounds = []
    for _ in range(11):
        rate.record_interval(0, 1.0, 100)
        bounds.append(rate.bound(100))
    assert bounds[:3] == [float("inf")] * 3
    assert bounds[10] == pytest.approx(10)
    rate.record_interval(50, 1.0, 50)
    assert rate.bound(100) == rate.rate_rps


def test_a_worker_with_nothing_to_do_is_not_slow() -> None:
    """Seconds without a request in flight say nothing."""
    rate = RunRate("r1")
    for ended, in_flight in ((0, 100), (1000, 100), (0, 0), (0, 0)):
        rate.record_interval(ended, 1.0, in_flight)
    assert rate.rate_rps == 1000


def test_what_was_taken_never_falls() -> None:
    """Checkpoints may come out of order."""
    rate = RunRate("r1")
    for taken in (10, 30, 20):
        rate.record_taken(taken)
    assert rate.taken == 30
