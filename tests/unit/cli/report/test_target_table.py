from collections.abc import Callable

import msgspec
from tests.unit.cli.conftest import make_outcomes
from tests.unit.cli.report.conftest import Page
from tests.unit.cli.views.test_targets_view import make_target

from oku_cli.report.run_history import RunHistory
from oku_cli.report.target_table import build_targets
from oku_core.results.summary import Summary
from oku_core.results.timing_summary import LatencySummary

MakeSummary = Callable[..., Summary]


def read(summary: Summary) -> Page:
    """The section, as a browser takes it."""
    section = build_targets(summary)
    assert section is not None
    page = Page(section.replace("<", " <"))
    assert page.faults == []
    return page


def test_a_run_that_names_no_targets_has_no_table(make_summary: MakeSummary) -> None:
    """The account says it all."""
    assert build_targets(make_summary()) is None


def test_each_target_has_its_counts_rate_and_quantiles(make_summary: MakeSummary) -> None:
    """What went wrong stands under its name."""
    buy = make_target(name="<buy>", requests=500, outcomes=make_outcomes(ok=480, failed_check=15, timeout=5))
    text = " ".join(read(make_summary(targets=[make_target(), buy])).text.split())
    assert "target requests rate ok p50 p95 p99 item" in text
    assert "item 1,000 500/s 100 % 1.50 ms 15.0 ms 20.0 ms" in text
    assert "<buy> 5 timeout, 15 failed check 500 500/s 96.00 % 1.50 ms 15.0 ms 20.0 ms" in text


def test_a_bar_is_as_long_as_the_requests_are_many_and_has_each_outcome(make_summary: MakeSummary) -> None:
    """Those of the target with the most fill the cell."""
    buy = make_target(name="buy", requests=500, outcomes=make_outcomes(ok=400, timeout=100))
    spans = read(make_summary(targets=[make_target(), buy])).find("span")
    bars = [(span["class"], span["style"]) for span in spans if span["class"] != "stacked-bar"]
    assert bars == [
        ("bar ok", "width:100.00%"),
        ("bar ok", "width:40.00%"),
        ("bar timeout", "width:10.00%"),
    ]


def test_targets_that_got_no_request_have_no_figures(make_summary: MakeSummary) -> None:
    """A run that was cancelled at once has a table all the same."""
    none = make_target(
        requests=0, outcomes=make_outcomes(), statuses={}, rate_rps=0.0, latency_ms=LatencySummary()
    )
    assert "item 0 0/s - - - -" in " ".join(read(make_summary(targets=[none])).text.split())


def test_a_run_with_a_rate_and_phases_has_response_times_and_a_table_for_each_phase(
    make_open_history: Callable[..., RunHistory],
) -> None:
    """The tables of the phases are folded; a note says what the warm-up is part of."""
    summary = make_open_history().summary
    times = {
        "response_time_ms": LatencySummary(p50=30.0, p95=31.0, p99=32.0, max=33.0),
        "lateness_ms": LatencySummary(max=1.0),
    }
    targets = [make_target(**times)]
    phases = [msgspec.structs.replace(phase, targets=targets) for phase in summary.phases]
    page = read(msgspec.structs.replace(summary, targets=targets, phases=phases))
    text = " ".join(page.text.split())
    assert "latency response time target requests rate ok p50 p95 p99 p50 p95 p99" in text
    assert "20.0 ms 30.0 ms 31.0 ms 32.0 ms" in text
    assert len(page.find("details")) == len(summary.phases)
    assert "Phase warm-up" in text
    assert "include the warm-up" in text
