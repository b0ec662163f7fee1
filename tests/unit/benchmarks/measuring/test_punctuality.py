from oku_benchmarks.measuring.punctuality import judge_arrivals, measure_lateness

SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND + 123_456_789
"""When a plan begins is not known to a target."""


def build_arrivals(rate: int, seconds: int) -> list[int]:
    """What keeps to the plan."""
    return [BEGIN + (2 * rank + 1) * SECOND // (2 * rate) for rank in range(rate * seconds)]


def test_arrivals_that_keep_to_the_plan_are_off_nowhere() -> None:
    """Wherever the plan began."""
    seen = judge_arrivals(build_arrivals(100, 5), 100, 5)

    assert (seen.planned, seen.arrived) == (500, 500)
    assert seen.seconds == [100] * 5
    assert (seen.off_seconds, seen.worst_off) == (0, 0)
    assert seen.gaps.even_share == 1
    assert (seen.gaps.p50, seen.gaps.max) == (10, 10)
    assert seen.lateness.max == 0


def test_a_second_without_requests_is_off_by_the_rate() -> None:
    """And a missing request makes no second off."""
    arrivals = build_arrivals(100, 5)
    missing = [each for each in arrivals if not BEGIN + 2 * SECOND <= each < BEGIN + 3 * SECOND]

    seen = judge_arrivals(missing[1:], 100, 5)

    assert seen.seconds == [99, 100, 0, 100, 100]
    assert (seen.off_seconds, seen.worst_off) == (1, 100)


def test_lateness_is_that_beyond_what_most_requests_share() -> None:
    """A constant delay is the beginning of the plan; what is later than that is late."""
    arrivals = build_arrivals(100, 10)
    delayed = [each + (5_000_000 if rank % 10 == 0 else 0) for rank, each in enumerate(arrivals)]

    late = measure_lateness(sorted(delayed), 100)

    assert (late.p50, late.p99, late.max) == (0, 5, 5)


def test_a_burst_has_the_lateness_of_its_length() -> None:
    """A hundred requests at once, ten times a second, are no thousand requests a second."""
    bursts = [BEGIN + burst * SECOND // 10 for burst in range(100) for _ in range(100)]

    seen = judge_arrivals(bursts, 1_000, 10)

    assert seen.off_seconds == 0
    assert seen.gaps.even_share == 0
    assert 97 <= seen.lateness.p99 <= 99


def test_a_request_on_each_connection_beforehand_makes_the_rest_not_late() -> None:
    """Only the count and the highest quantiles know of them, as long as they are few."""
    arrivals = [BEGIN - 1000] * 50 + build_arrivals(1_000, 10)

    seen = judge_arrivals(arrivals, 1_000, 10)

    assert seen.arrived == 10_050
    assert seen.lateness.p99 == 0


def test_a_rate_that_is_too_low_makes_later_and_later() -> None:
    """After ten seconds at 99 of 100 requests a second, a tenth of a second."""
    slow = [BEGIN + rank * SECOND // 99 for rank in range(990)]

    late = measure_lateness(slow, 100)

    assert 0.09e3 < late.max < 0.11e3
