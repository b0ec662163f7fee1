import pytest

from oku_benchmarks.arrivals import Load, judge_arrivals, measure_lateness
from oku_benchmarks.rates import Reported, read_fortio, read_k6, read_oha, read_vegeta

SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND + 123_456_789
"""When a plan begins is not known to a target."""


def build_arrivals(rate: int, seconds: int) -> list[int]:
    """What keeps to the plan."""
    return [BEGIN + (2 * rank + 1) * SECOND // (2 * rate) for rank in range(rate * seconds)]


def test_arrivals_that_keep_to_the_plan_are_off_nowhere() -> None:
    """Wherever the plan began; a second without requests is off by the rate."""
    seen = judge_arrivals(build_arrivals(100, 5), 100, 5)
    assert (seen.arrived, seen.off_seconds, seen.worst_off, max(seen.late_ms)) == (500, 0, 0, 0)
    missing = [each for each in build_arrivals(100, 5) if not BEGIN + 2 * SECOND <= each < BEGIN + 3 * SECOND]
    seen = judge_arrivals(missing[1:], 100, 5)
    assert (seen.off_seconds, seen.worst_off) == (1, 100)


def test_lateness_is_that_beyond_what_most_requests_share() -> None:
    """A constant delay is the beginning of the plan; what is later than that is late."""
    delayed = sorted(
        each + (5_000_000 if rank % 10 == 0 else 0) for rank, each in enumerate(build_arrivals(100, 10))
    )
    assert measure_lateness(delayed, 100) == (0, 5, 5)


def test_a_burst_has_the_lateness_of_its_length() -> None:
    """A hundred requests at once, ten times a second, are no thousand requests a second."""
    bursts = [BEGIN + burst * SECOND // 10 for burst in range(100) for _ in range(100)]
    seen = judge_arrivals(bursts, 1_000, 10)
    assert seen.off_seconds == 0
    assert 97 <= seen.late_ms[1] <= 99


def test_a_request_on_each_connection_beforehand_makes_the_rest_not_late() -> None:
    """Only the count knows of them, as long as they are few."""
    seen = judge_arrivals([BEGIN - 1000] * 50 + build_arrivals(1_000, 10), 1_000, 10)
    assert (seen.arrived, seen.late_ms[1]) == (10_050, 0)


def test_what_is_due_in_a_freeze_waits_for_its_end() -> None:
    """The first for all of it; so does what would have been answered within it."""
    never = Load(rate=10, run_s=2, freeze_at_s=5, freeze_s=1, delay_ms=10)
    assert never.list_waits_ms() == pytest.approx([10] * 20)
    frozen = Load(rate=10, run_s=4, freeze_at_s=1, freeze_s=2)
    assert frozen.list_waits_ms() == pytest.approx([0] * 20 + [50 + 100 * i for i in range(20)])
    before = Load(rate=10, run_s=4, freeze_at_s=1, freeze_s=2, delay_ms=60)
    assert max(before.list_waits_ms()) == pytest.approx(2050)


def test_each_tool_has_its_own_units_and_names() -> None:
    """All reports are read as milliseconds; k6 also reports what it left out."""
    oha = {
        "summary": {"slowest": 1.004},
        "latencyPercentiles": {"p50": 0.005, "p99": 0.956},
        "statusCodeDistribution": {"200": 4_999},
        "errorDistribution": {"aborted due to deadline": 3},
    }
    vegeta = {"latencies": {"50th": 5_000_000, "99th": 956_000_000, "max": 1_004_000_000}, "requests": 4_999}
    percentiles = [{"Percentile": 50, "Value": 0.005}, {"Percentile": 99, "Value": 0.956}]
    fortio = {"DurationHistogram": {"Count": 4_999, "Max": 1.004, "Percentiles": percentiles}}
    duration = {"med": 5.0, "p(99)": 956.0, "max": 1004.0}
    k6 = {"metrics": {"http_req_duration": duration, "http_reqs": {"count": 4_999}}}
    dropped = {"metrics": {**k6["metrics"], "dropped_iterations": {"count": 905}}}
    for reported in (read_oha(oha), read_vegeta(vegeta), read_fortio(fortio), read_k6(k6)):
        times = (reported.p50_ms, reported.p99_ms, reported.max_ms)
        assert (reported.requests, *times) == pytest.approx((4_999, 5, 956, 1004))
    assert read_k6(dropped) == Reported(4_999, 5, 956, 1004, left_out=905)
