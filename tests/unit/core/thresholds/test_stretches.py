import math
from typing import Any

import pytest

from oku_core.accounting.histogram import Histogram
from oku_core.spec.values.threshold import Threshold
from oku_core.thresholds.stretches import SeenSecond, Stretch, StretchValue


def _see(stretch: Stretch, at: float, **known: Any) -> StretchValue | None:
    latency = Histogram()
    for latency_ms in known.pop("latencies_ms", ()):
        latency.record(1000 * latency_ms)
    answered = latency.total
    figures: dict[str, Any] = {
        "seconds": 1.0,
        "phase": "",
        "outcomes": [answered, 0, known.pop("timeouts", 0), 0, 0, 0, 0, 0, 0],
        "sent": answered,
        "planned": None,
        "latency": latency.build_latency(),
    }
    return stretch.add(SeenSecond(at=at, **(figures | known)))


def _see_rates(text: str, rates: list[tuple[int, int]]) -> list[float | None]:
    stretch = Stretch(Threshold(text))
    seen = [_see(stretch, at, sent=sent, planned=planned) for at, (sent, planned) in enumerate(rates)]
    return [value and round(value.value, 3) for value in seen]


def test_a_stretch_is_judged_once_it_is_full_and_then_every_second() -> None:
    """The first seconds are left out, because workers tell of each in the next one."""
    values = _see_rates("rate >= 50/s over 2s", [(0, 0), (10, 0), (60, 0), (40, 0), (20, 0)])
    assert values == [None, None, None, 50.0, 30.0]


def test_what_was_sent_may_follow_the_plan_by_two_seconds() -> None:
    """On a ramp, what workers told of is that of a second ago."""
    ramp = [(100 * max(0, at - 1), 100 * at) for at in range(8)]
    values = _see_rates("rate >= 0.99 of plan over 2s", ramp)
    assert values[-1] == 1.0


def test_less_than_was_planned_is_seen() -> None:
    """The share is of the plan that fits best."""
    values = _see_rates("rate >= 0.99 of plan over 2s", [(90, 100)] * 6)
    assert values[3:] == [0.9, 0.9, 0.9]


@pytest.mark.parametrize(
    ("gap", "known"), [(5.0, {}), (0.0, {"phase": "warm-up"}), (0.0, {"is_busy": False})]
)
def test_a_stretch_begins_anew_behind_what_is_not_judged(gap: float, known: dict[str, Any]) -> None:
    """That is a pause, the warm-up, or the end of a run, when nothing is left to be sent."""
    stretch = Stretch(Threshold("rate >= 5/s over 1s"))
    for at in range(4):
        seen = _see(stretch, at, sent=9)
    assert seen == StretchValue(9.0, holds=True)

    assert _see(stretch, 4 + gap, sent=0, **known) is None
    assert _see(stretch, 5 + gap, sent=0) is None


def test_only_the_seconds_of_its_phase_are_judged() -> None:
    """Others are as if they were not there."""
    stretch = Stretch(Threshold("rate >= 5/s over 1s during steady"))
    seen = [_see(stretch, at, sent=1, phase="ramp" if at < 5 else "steady") for at in range(9)]
    assert seen == [None] * 7 + [StretchValue(1.0, holds=False)] * 2


def test_times_and_outcomes_are_judged_as_over_the_whole_run() -> None:
    """Requests without an answer are slower than any limit; without any request there is nothing to say."""
    quantile, share = Stretch(Threshold("p90 < 5ms over 1s")), Stretch(Threshold("ok >= 90% over 1s"))
    for at in range(2):
        _see(quantile, at)
        _see(share, at)

    assert _see(quantile, 2) is None
    assert _see(quantile, 3, latencies_ms=[1] * 9, timeouts=1) == StretchValue(1.0, holds=True)
    assert _see(quantile, 4, latencies_ms=[1] * 8, timeouts=2) == StretchValue(math.inf, holds=False)
    assert _see(share, 2, latencies_ms=[1] * 9, timeouts=1) == StretchValue(0.9, holds=True)


def test_the_worse_of_two_values_is_the_one_that_is_further_from_what_is_wanted() -> None:
    """That depends on the side of the limit."""
    assert Stretch(Threshold("p90 < 5ms over 1s")).is_worse(math.inf, 3.0)
    assert Stretch(Threshold("ok >= 90% over 1s")).is_worse(0.5, 0.6)
