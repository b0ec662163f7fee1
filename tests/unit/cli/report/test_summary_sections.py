from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.kit.runs.summaries import build_summary, make_outcomes, make_phase, make_target
from tests.unit.cli.report.conftest import Page
from tests.unit.cli.views.threshold_run import build_threshold_run

from oku_cli.report.history_reader import RunHistory, read_load
from oku_cli.report.markup import Html
from oku_cli.report.summary_sections import (
    OPEN_WORKERS,
    build_balance,
    build_flags,
    build_head,
    build_outcome_section,
    build_phase_section,
    build_step_section,
    build_target_section,
    build_threshold_section,
    build_worker_section,
)
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import OPEN_END
from oku_core.summary.latency_summary import LatencySummary, StepSummary, TimingSummary
from oku_core.summary.summary import ServersSummary, Summary, WorkerSummary
from oku_core.summary.validity import Flag, Validity

STEPS = TimingSummary(connect=StepSummary(requests=20, p50=0.2, p99=0.4))


def read(section: Html | None) -> Page:
    """A section, as a browser takes it."""
    assert section is not None
    page = Page(section.replace("<", " <"))
    assert page.faults == []
    return page


def build_workers(count: int) -> Summary:
    """A run with so many workers."""
    worker = WorkerSummary(name="w", requests=1, cpu_s=1.0, peak_rss_mb=50.0, lost=False)
    return build_summary(workers=[worker] * count)


def test_sections_of_a_summary() -> None:
    """Nothing is said of what was not asked for."""
    summary = build_summary(workers=[])
    sections = [build(summary) for build in (build_target_section, build_step_section, build_worker_section)]
    assert [*sections, build_phase_section(summary, None), build_threshold_section(summary)] == [None] * 5
    # Thresholds have a row each and a note. The limit is there, too: a page has room for it.
    text = " ".join(read(build_threshold_section(build_threshold_run())).text.split())
    assert "p99 < 1s failed 1.00 s" in text
    assert "0.1 % wide" in text
    # A run without responses says so. The account of outcomes is there in any case.
    text = " ".join(read(build_outcome_section(build_summary(statuses={}))).text.split())
    assert "Responses by status None." in text
    # Many workers are folded under their spread. Few have a row each.
    assert read(build_worker_section(build_workers(OPEN_WORKERS))).find("details") == []
    page = read(build_worker_section(build_workers(OPEN_WORKERS + 1)))
    assert len(page.find("details")) == 1
    assert len(page.find("tr")) == 1 + 3 + 1 + OPEN_WORKERS + 1
    assert "17 workers, none lost." in page.text
    # Targets and their steps are folded. A note says what the warm-up is part of.
    targets = [make_target()]
    phases = [make_phase(name=name, targets=targets) for name in ("warm-up", "main")]
    page = read(build_target_section(build_summary(targets=targets, phases=phases)))
    assert len(page.find("details")) == 2
    assert "Phase warm-up" in page.text
    assert "include the warm-up" in page.text
    # The steps of each target are folded. A run without named targets has the table of the run alone.
    summary = build_summary(timing_ms=STEPS, targets=[make_target(timing_ms=STEPS)])
    assert len(read(build_step_section(summary)).find("details")) == 1
    assert not read(build_step_section(msgspec.structs.replace(summary, targets=[]))).find("details")


MakeSummary = Callable[..., Summary]


@pytest.mark.parametrize(
    ("changes", "badge", "class_"),
    [
        ({}, "completed · 100 % ok", "state good"),
        ({"outcomes": make_outcomes(ok=999, timeout=1)}, "completed · 99.90 % ok", "state caution"),
        ({"outcomes": make_outcomes(connect_error=1000)}, "completed · 0 % ok", "state bad"),
        (
            {"state": RunState.PENDING, "accounted": 0, "outcomes": make_outcomes()},
            "pending",
            "state caution",
        ),
    ],
)
def test_the_badge_is_green_only_if_all_was_ok(
    make_summary: MakeSummary, changes: dict[str, Any], badge: str, class_: str
) -> None:
    """It is red if nothing was ok, although the run is complete."""
    head = Page(build_head(make_summary(**changes)))
    assert f">{badge}</span>" in build_head(make_summary(**changes))
    assert [element["class"] for element in head.find("span")] == [class_]


def test_the_account_comes_first(make_summary: MakeSummary) -> None:
    """It says how many of how many, whether that balances, and what the delay servers counted."""
    text = Page(build_balance(make_summary())).text
    assert text.startswith("Account1,000 of 1,000 requests accountedaccountbalancesresent at most0")
    assert "delay servers counted1,000 = accounted" in text
    assert "p99.911.0 ms" in text
    # The account says how many requests are missing.
    paused = make_summary(state=RunState.PAUSED, accounted=999)
    assert "(99.9 %; 1 are left)" in Page(build_balance(paused)).text
    cancelled = make_summary(state=RunState.CANCELLED, accounted=999)
    assert "(99.9 %; 1 were not made)" in Page(build_balance(cancelled)).text
    running = make_summary(state=RunState.RUNNING, accounted=1, servers=ServersSummary(served=5))
    assert "balances so far" in Page(build_balance(running)).text
    # An account that does not balance says so. It says so in place of `balances`.
    flag = Validity(flag=Flag.UNBALANCED, detail="1 is ok, the servers counted 0", requests=1)
    text = Page(build_balance(make_summary(validity=[flag]))).text
    assert "does not balance: 1 is ok, the servers counted 0" in text
    # Every flag is shown. Each says how many requests it concerns; without any, a sentence says so.
    flags = [Validity(flag=Flag.WORKER_LOST, detail="a worker died", requests=1)]
    assert Page(build_flags(flags)).text == "worker lost 1 request: a worker died"
    assert "No flags" in Page(build_flags([])).text


def test_a_run_has_an_account_whatever_it_lacks(make_summary: MakeSummary) -> None:
    """Nothing is divided by zero."""
    summary = make_summary(
        state=RunState.PENDING, accounted=0, started_at=None, ended_at=None, active_s=0.0, throughput_rps=0.0,
        outcomes=make_outcomes(), statuses={}, servers=None,
    )  # fmt: skip
    assert "0 of 1,000" in Page(build_balance(summary)).text
    # A run without answers has no latencies. Its throughput is there all the same.
    text = Page(build_balance(make_summary(Histogram()))).text
    assert "p50" not in text
    assert "throughput100/s" in text
    # A run with a rate names its distributions.
    text = Page(
        build_balance(make_summary(lateness_ms=LatencySummary(min=0.1, p50=0.2, p99=1.5, max=2.0)))
    ).text
    assert "latency p505.99 ms" in text
    assert "lateness p991.50 ms" in text
    assert "p90" not in text


@pytest.mark.parametrize(("load", "width"), [({"duration": "20s"}, "50.0"), (None, "0.0")])
def test_the_time_of_a_run_without_an_end_is_its_progress(
    make_summary: MakeSummary, load: dict[str, str] | None, width: str
) -> None:
    """Half of its 20 s is over; how many requests that will be is not known."""
    summary = make_summary(state=RunState.RUNNING, requests=OPEN_END)
    account = build_balance(summary, None if load is None else read_load(load))
    assert "1,000 requests accounted; its time is not up" in Page(account).text
    assert f"width:{width}%" in account


def test_a_run_with_a_rate_says_how_well_it_kept_to_its_plan(
    make_summary: MakeSummary, make_open_history: Callable[..., RunHistory]
) -> None:
    """By as much, requests of different workers may be early or late; a closed run does not care."""
    for bound_s, text in [(0.0, "exactly, on one machine"), (0.000084, "within 84.0 µs")]:
        account = Page(build_balance(make_summary(), clock_bound_s=bound_s)).text
        assert f"workers knew the clock{text}" in account
        assert "clock" not in Page(build_balance(make_summary())).text
    # A run with a rate says how well it kept to its plan.
    text = Page(build_balance(make_open_history().summary)).text
    assert "kept to the planin 8 of 9 seconds, to 1 %" in text
    assert "planned100/sthroughput100/s" in text


def test_the_head_says_which_run(make_summary: MakeSummary) -> None:
    """It shows the name of the run, or its id if it has no name."""
    text = Page(build_head(make_summary())).text
    assert text == (
        "soak completed · 100 % okrun 6f2c1a · engine aiohttp · started 2026-02-01 17:05:12 UTC"
        " · ended 2026-02-01 17:05:22 UTC · active for 10.0 s"
    )
    assert Page(build_head(make_summary(name=""))).text.startswith("run 6f2c1a completed")
    # The head says the load. A run of a coordinator of another version has none.
    text = Page(build_head(make_summary(load="5/s for 10 s, 50 requests"))).text
    assert "· engine aiohttp · 5/s for 10 s, 50 requests · started" in text
    # The head says what is asked. The target stands before the load.
    text = Page(build_head(make_summary(target="http://h/{i}", load="5/s for 10 s"))).text
    assert "· engine aiohttp · http://h/{i} · 5/s for 10 s · started" in text
    # A run that failed says why. The reason is shown as text, whatever it contains.
    head = build_head(make_summary(state=RunState.FAILED, reason="<script>"))
    assert "<script>" in Page(head).text
    assert Page(head).find("script") == []
    # A long wait is named. That for workers of this machine is not: every run has it.
    heads = [Page(build_head(make_summary(queued_s=queued_s))).text for queued_s in (1.5, 754.0)]
    assert "queued" not in heads[0]
    assert "· queued for 12 min 34 s · active for" in heads[1]
