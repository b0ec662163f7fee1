from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.core.thresholds.parts import build_requests

from oku_core.spec.values.threshold import FigureUnit, Threshold
from oku_core.thresholds.judging import judge
from oku_core.thresholds.measurement import Measurement
from oku_core.thresholds.threshold_summary import ThresholdVerdict

_PASSED, _FAILED, _UNDECIDED = ThresholdVerdict


def _judge(text: str, *parts: Any, **known: Any) -> tuple[ThresholdVerdict, float | None]:
    summary = judge(Threshold(text), Measurement(parts=parts, is_over=True, **known))
    return summary.verdict, summary.value


def test_requests_without_an_answer_are_slower_than_any_limit() -> None:
    """Five timeouts of 100 do not pass a 99th percentile, and there is no value to show for it."""
    requests = build_requests([1] * 95, timeout=5)
    assert _judge("p99 < 1h", requests) == (_FAILED, None)
    assert _judge("p95 < 2ms", requests) == (_PASSED, 1.0)
    assert _judge("max < 1h", requests) == (_FAILED, None)
    # A bucket on the limit counts as beyond it.
    assert _judge("p99 < 300ms", build_requests([299.7] * 100))[0] is _PASSED
    assert _judge("p99 < 300ms", build_requests([299.9] * 100)) == (_FAILED, 299.9)
    assert _judge("p99 < 1ms", build_requests([0.999] * 100))[0] is _PASSED
    assert _judge("p99 < 1ms", build_requests([1.0] * 100))[0] is _FAILED
    assert _judge("p99 <= 1ms", build_requests([1.0] * 100))[0] is _PASSED
    # Parts are judged together. A run with several phases or targets is one account.
    parts = build_requests([1] * 50), build_requests([3] * 50)
    assert _judge("p50 <= 1ms", *parts) == (_PASSED, 1.0)
    assert _judge("p51 <= 1ms", *parts) == (_FAILED, 3.0)
    assert _judge("mean <= 2ms", *parts) == (_PASSED, 2.0)


def test_without_data_nothing_is_decided() -> None:
    """A run that has sent nothing has not passed."""
    for text in ["p99 < 1s", "ok >= 1%", "ok >= 1", "mean < 1s", "rate >= 1/s"]:
        summary = judge(Threshold(text), Measurement(parts=[], is_over=True, seconds=1.0))
        assert (summary.verdict, summary.holds) == (_UNDECIDED, None)
        assert summary.detail == "there are no requests to judge"
    for text in ["p99 < 1s", "ok >= 1%", "timeout <= 3", "mean < 1s", "rate >= 1/s"]:
        # An account that does not balance decides nothing, and undoes what was decided before.
        measured = Measurement(parts=[build_requests([1])], is_over=True, seconds=1.0, is_balanced=False)
        for is_lost in (False, True):
            summary = judge(Threshold(text), measured, is_lost=is_lost)
            assert (summary.verdict, summary.detail) == (_UNDECIDED, "the account does not balance")


def test_shares_are_of_all_requests_and_a_limit_that_is_met_is_met_exactly() -> None:
    """There is no rounding on the way."""
    requests = build_requests([1] * 999, disconnected=1)
    assert _judge("ok >= 99.9%", requests) == (_PASSED, 0.999)
    assert _judge("ok > 99.9%", requests)[0] is _FAILED
    assert _judge("failed + lost <= 0.1%", requests)[0] is _PASSED
    assert _judge("disconnected < 1", requests) == (_FAILED, 1)
    # Requests that were not sent or are lost leave undecided what they could turn.
    requests = build_requests([1] * 90, not_sent=6, lost=4)
    assert _judge("p90 < 2ms", requests)[0] is _PASSED
    assert _judge("p99 < 2ms", requests)[0] is _UNDECIDED
    assert _judge("p90 < 1ms", requests)[0] is _FAILED
    assert _judge("timeout < 5%", requests)[0] is _UNDECIDED
    assert _judge("not_sent <= 6%", requests)[0] is _PASSED
    assert _judge("not_sent + lost < 10%", requests)[0] is _FAILED


def test_what_was_measured_under_strain_leaves_undecided_what_it_could_turn() -> None:
    """Slow answers and timeouts may be the worker's own doing; what the target has refused is not."""
    requests = build_requests([1] * 97 + [9] * 2, timeout=1)

    assert _judge("p98 < 2ms", requests, strained=0)[0] is _FAILED
    assert _judge("p98 < 2ms", requests, strained=1)[0] is _UNDECIDED
    assert _judge("p99 < 2ms", requests, strained=1)[0] is _FAILED
    assert _judge("p97 < 2ms", requests, strained=100)[0] is _PASSED
    assert _judge("ok >= 100%", requests, strained=1)[0] is _UNDECIDED
    refused = build_requests([1] * 99, connect_error=1)
    assert _judge("ok >= 100%", refused, strained=50)[0] is _FAILED
    assert _judge("mean < 2ms", build_requests([1, 9]), strained=1)[0] is _UNDECIDED
    assert _judge("mean < 1ms", build_requests([5, 5, 5]), strained=1)[0] is _FAILED


def test_a_rate_that_was_missed_is_in_doubt_if_a_worker_was_short_of_processor_time() -> None:
    """One in a hundred requests is as many as it takes for the flag."""
    requests = build_requests([1] * 200)

    assert _judge("rate >= 20/s", requests, seconds=10.0) == (_PASSED, 20.0)
    assert _judge("rate > 20/s", requests, seconds=10.0, strained=1)[0] is _FAILED
    assert _judge("rate > 20/s", requests, seconds=10.0, strained=2)[0] is _UNDECIDED
    assert _judge("rate >= 99% of plan", requests, seconds=10.0, planned_rps=20.0) == (_PASSED, 1.0)
    assert _judge("rate >= 99% of plan", requests, seconds=10.0, planned_rps=25.0) == (_FAILED, 0.8)


def test_a_run_that_was_cut_short_decides_only_what_is_certain() -> None:
    """What was not made could have been anything."""
    requests = build_requests([1] * 100, timeout=20)
    known: dict[str, Any] = {"parts": [requests], "rest": 880, "is_cut_short": True}
    summaries = [
        judge(Threshold(text), Measurement(**known)) for text in ("p99 < 1s", "p90 < 1s", "mean < 1s")
    ]
    assert [summary.verdict for summary in summaries] == [_FAILED, _UNDECIDED, _UNDECIDED]
    assert all("cut short" in summary.detail for summary in summaries[1:])
    # What was lost for certain stays lost.
    measured = Measurement(parts=[build_requests([9] * 5)], rest=5, strained=10)
    threshold = Threshold("p60 < 1ms")
    assert judge(threshold, measured).verdict is _UNDECIDED
    assert judge(threshold, measured, is_lost=True).verdict is _FAILED


def test_how_far_a_threshold_is_from_being_lost_is_a_number_of_requests() -> None:
    """It is not known before it is known how many requests there are."""
    requests = build_requests([1] * 97 + [9] * 2, timeout=1)

    summary = judge(Threshold("p99 < 2ms"), Measurement(parts=[requests], rest=900))
    assert (summary.against, summary.allowed, summary.verdict) == (3, 10, _UNDECIDED)
    assert (summary.value, summary.limit, summary.unit) == (9.0, 2.0, FigureUnit.MS)
    assert summary.holds is False
    open_ended = judge(Threshold("p99 < 2ms"), Measurement(parts=[requests], rest=9, is_rest_exact=False))
    assert (open_ended.against, open_ended.allowed) == (3, None)


_latencies = st.lists(st.sampled_from([0.5, 1.0, 1.5, 300, 5000]) | st.none(), min_size=1, max_size=40)


@given(
    st.sampled_from(["p50 < 1ms", "p90 <= 1ms", "p99 < 300ms", "max < 1s", "ok >= 75%", "timeout <= 4"]),
    _latencies,
    st.integers(0, 40),
    st.integers(0, 5),
)
def test_a_verdict_that_is_given_before_the_end_is_that_of_the_end(
    text: str, latencies: list[float | None], so_far: int, surplus: int
) -> None:
    """Whatever the latencies of the rest are, and if fewer requests come than could."""
    threshold, so_far = Threshold(text), min(so_far, len(latencies))

    def measure(number: int, rest: int) -> Measurement:
        answered = [latency for latency in latencies[:number] if latency is not None]
        return Measurement(
            parts=[build_requests(answered, timeout=number - len(answered))],
            rest=rest,
            is_over=number == len(latencies),
        )

    early = judge(threshold, measure(so_far, len(latencies) - so_far + surplus))
    assume(early.verdict is not _UNDECIDED)
    assert judge(threshold, measure(len(latencies), 0)).verdict is early.verdict
