import math
from collections.abc import Sequence
from typing import Any

import pytest
from tests.kit.outcomes import make_counts

from oku_core.accounting.counts import Counts
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.spec.values.threshold import Threshold
from oku_core.thresholds.stretches import SeenSecond, Stretch, StretchValue, looks_live


def _see(stretch: Stretch, at: float, **known: Any) -> StretchValue | None:
    latency = Histogram()
    for latency_ms in known.pop("latencies_ms", ()):
        latency.record(1000 * latency_ms)
    figures: dict[str, Any] = {
        "seconds": 1.0,
        "clock_s": at,
        "counts": Counts(
            outcomes=make_counts(latency.total, timeout=known.pop("timeouts", 0)),
            times={Time.LATENCY: latency.build_latency()} if latency.total else {},
        ),
    }
    return stretch.add(SeenSecond(at=at, **(figures | known)))


def _see_rates(text: str, rates: Sequence[tuple[int, float | None]], **known: Any) -> list[float | None]:
    stretch = Stretch(Threshold(text))
    seen = [
        _see(stretch, at, sent=sent, planned=planned, **known) for at, (sent, planned) in enumerate(rates)
    ]
    return [value and round(value.value, 3) for value in seen]


def test_a_stretch_is_judged_once_it_is_full_and_then_every_second() -> None:
    """Each second belongs to it from the first one on; each stretch has as many seconds as it says."""
    values = _see_rates("rate >= 50/s over 2s", [(10, None), (60, None), (40, None), (20, None)])
    assert values == [None, 35.0, 50.0, 30.0]
    # A part of a second needs a whole one. Over 1.5 s means over 2 s of seconds that are known as a whole.
    assert _see_rates("rate >= 5/s over 1500ms", [(6, None), (4, None), (9, None)]) == [None, 5.0, 6.5]


def test_a_share_is_that_of_the_plan_of_the_same_seconds() -> None:
    """On a ramp, the plan of other seconds would be another one."""
    ramp = [(90 * at, 100 * at) for at in range(1, 6)]
    assert _see_rates("rate >= 0.99 of plan over 2s", ramp) == [None, 0.9, 0.9, 0.9, 0.9]
    # Seconds for which nothing is planned have no share of a plan.
    values = _see_rates("rate >= 0.99 of plan over 2s", [(0, 0), (0, 0), (3, 3), (0, 0)])
    assert values == [None, None, 1.0, 1.0]


def test_requests_that_were_a_little_late_count_in_the_second_in_which_they_were_due() -> None:
    """They count once: not in the second in which they were sent."""
    stretch = Stretch(Threshold("rate >= 0.99 of plan over 2s"))
    late = [(95, 0, 5), (100, 5, 5), (105, 5, 0), (95, 0, 2), (102, 2, 0)]
    seen = [
        _see(stretch, at, sent=sent, planned=100, carried_in=carried_in, carried_out=carried_out)
        for at, (sent, carried_in, carried_out) in enumerate(late)
    ]
    assert [each and each.value for each in seen] == [None, 1.0, 1.0, 0.985, 0.985]
    # Requests that were a little late count for a rate without a plan too. It is the same rate.
    assert _see_rates("rate >= 100/s over 1s", [(95, 100)], carried_out=5) == [100.0]
    # An estimate of what is due has its deviation.
    values = _see_rates("rate >= 0.99 of plan over 1s", [(80, 100), (79, 100)], variance=(16.0, 9.0))
    assert values == [1.0, 0.99]


@pytest.mark.parametrize(
    ("gap", "known"),
    [(5.0, {}), (1.0, {}), (0.0, {"phases": ["warm-up"]}), (0.0, {"phases": ["warm-up", ""]})],
)
def test_a_stretch_begins_anew_behind_what_is_not_judged(gap: float, known: dict[str, Any]) -> None:
    """That is a pause, also one of a single second, or the warm-up."""
    stretch = Stretch(Threshold("rate >= 5/s over 2s"))
    for at in range(4):
        seen = _see(stretch, at, sent=9)
    assert seen is not None
    assert (seen.value, seen.holds) == (9.0, True)

    assert _see(stretch, 4 + gap, sent=0, **known) is None
    assert _see(stretch, 5 + gap, sent=0) == (
        None if known else StretchValue(0.0, holds=False, clock_s=5 + gap)
    )
    assert _see(stretch, 6 + gap, sent=0) is not None


def test_only_seconds_that_lie_in_its_phase_are_judged() -> None:
    """A second that another phase has a part in would be judged by that one's requests."""
    stretch = Stretch(Threshold("rate >= 5/s over 1s during steady"))
    phases = [["ramp"], ["ramp", "steady"], ["steady"], ["steady"], ["steady", "end"], ["end"]]
    seen = [_see(stretch, at, sent=1, phases=each) for at, each in enumerate(phases)]
    lost = [StretchValue(1.0, holds=False, phase="steady", clock_s=at) for at in (2, 3)]
    assert seen == [None, None, *lost, None, None]


def test_times_and_outcomes_are_judged_as_over_the_whole_run() -> None:
    """Requests without an answer are slower than any limit; without any request there is nothing to say."""
    quantile, share = Stretch(Threshold("p90 < 5ms over 1s")), Stretch(Threshold("ok >= 90% over 1s"))
    assert _see(quantile, 2) is None
    assert _see(quantile, 3, latencies_ms=[1] * 9, timeouts=1) == StretchValue(1.0, holds=True, clock_s=3)
    assert _see(quantile, 4, latencies_ms=[1] * 8, timeouts=2) == StretchValue(
        math.inf, holds=False, clock_s=4
    )
    assert _see(share, 2, latencies_ms=[1] * 9, timeouts=1) == StretchValue(0.9, holds=True, clock_s=2)


def test_seconds_as_ticks_have_them_are_in_a_row() -> None:
    """They are a few milliseconds late, and one after a late one begins later."""
    stretch = Stretch(Threshold("rate >= 5/s over 3s"))
    ends = [(10.004, 1.0), (11.3, 1.296), (13.002, 1.0), (14.003, 1.0)]
    seen = [stretch.add(SeenSecond(at=at, seconds=seconds, sent=6)) for at, seconds in ends]
    assert [each is not None for each in seen] == [False, False, True, True]
    # How long the longest row was is known. It says why a threshold was never judged.
    stretch = Stretch(Threshold("rate >= 5/s over 9s"))
    for at in (1, 2, 3, 7, 8):
        _see(stretch, at)
    assert stretch.longest_s == 3.0


def test_outcomes_of_all_seconds_of_a_stretch_count_and_of_no_others() -> None:
    """What a stretch has left behind is forgotten."""
    stretch = Stretch(Threshold("timeout < 3 over 2s"))
    seen = [
        _see(stretch, at, latencies_ms=[1], timeouts=timeouts) for at, timeouts in enumerate([2, 1, 1, 0])
    ]
    assert [each and each.value for each in seen] == [None, 3.0, 2.0, 1.0]
    # The worse of two values is the one that is further from what is wanted.
    assert Stretch(Threshold("p90 < 5ms over 1s")).is_worse(math.inf, 3.0)
    assert Stretch(Threshold("ok >= 90% over 1s")).is_worse(0.5, 0.6)
    # Only times have to be seen live. The series has the rest.
    texts = ["p90 < 5ms over 1s", "mean < 5ms over 1s", "ok >= 9% over 1s", "rate > 1/s over 1s"]
    assert [looks_live(Threshold(text)) for text in texts] == [True, True, False, False]
