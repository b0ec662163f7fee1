from collections.abc import Callable

import pytest

from oku_cli.views.distribution_view import list_distributions
from oku_cli.views.timing_view import build_timing
from oku_core.results.summary import Summary
from oku_core.results.timing_summary import StepSummary, TimingSummary

MakeSummary = Callable[..., Summary]
Render = Callable[..., list[str]]
CONNECT, TLS = StepSummary(requests=11, p50=0.25, p99=0.5), StepSummary(requests=1, p50=2.0, p99=3.0)
FIRST_BYTE, TRANSFER = (
    StepSummary(requests=1000, p50=4.0, p99=5.0),
    StepSummary(requests=1000, p50=0.0, p99=7.0),
)


@pytest.mark.parametrize(
    ("timing", "shown"),
    [
        ({"connect": CONNECT}, "connect p50 250 µs p99 500 µs (11)"),
        (
            {"connect": StepSummary(requests=1, p50=0.25, p99=0.5), "tls": TLS},
            "connect p50 250 µs p99 500 µs (1)   TLS p50 2.00 ms p99 3.00 ms (1)",
        ),
        (
            {"first_byte": FIRST_BYTE, "transfer": TRANSFER},
            "first byte p50 4.00 ms p99 5.00 ms   transfer p50 0 ms p99 7.00 ms",
        ),
    ],
)
def test_the_steps_that_tell_something_are_shown(
    make_summary: MakeSummary, render: Render, timing: dict[str, StepSummary], shown: str
) -> None:
    """Their medians and 99th percentiles, and how many connections there were."""
    summary = make_summary(timing_ms=TimingSummary(**timing))
    lines = render(build_timing(summary), 120)
    assert [line.strip() for line in lines if line.strip()] == [shown]
    assert "timing" in dict(list_distributions(summary))


@pytest.mark.parametrize(
    "timing",
    [
        {},
        {"connect": StepSummary(requests=10, p50=0.25, p99=0.5)},
        {"first_byte": FIRST_BYTE, "transfer": StepSummary(requests=1000, p50=0.0, p99=0.0, max=3.0)},
    ],
)
def test_a_run_of_small_answers_on_kept_connections_shows_none(
    make_summary: MakeSummary, timing: dict[str, StepSummary]
) -> None:
    """Its latency says all: a connection for each hundredth request, or a split answer, changes none."""
    summary = make_summary(timing_ms=TimingSummary(**timing))
    assert build_timing(summary) is None
    assert "timing" not in dict(list_distributions(summary))
