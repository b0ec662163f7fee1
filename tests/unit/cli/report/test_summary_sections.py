import msgspec
from tests.kit.runs.summaries import build_summary, make_phase, make_target
from tests.unit.cli.report.conftest import Page
from tests.unit.cli.views.threshold_run import build_threshold_run

from oku_cli.report.markup import Html
from oku_cli.report.summary_sections import (
    OPEN_WORKERS,
    build_outcome_section,
    build_phase_section,
    build_step_section,
    build_target_section,
    build_threshold_section,
    build_worker_section,
)
from oku_core.summary.latency_summary import StepSummary, TimingSummary
from oku_core.summary.summary import Summary, WorkerSummary

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


def test_what_a_run_does_not_have_has_no_section() -> None:
    """Nothing is said of what was not asked for."""
    summary = build_summary(workers=[])
    sections = [build(summary) for build in (build_target_section, build_step_section, build_worker_section)]
    assert [*sections, build_phase_section(summary, None), build_threshold_section(summary)] == [None] * 5


def test_thresholds_have_a_row_each_and_a_note() -> None:
    """The limit is there, too: a page has room for it."""
    text = " ".join(read(build_threshold_section(build_threshold_run())).text.split())
    assert "p99 < 1s failed 1.00 s" in text
    assert "0.1 % wide" in text


def test_the_targets_of_each_phase_are_folded() -> None:
    """A note says what the warm-up is part of."""
    targets = [make_target()]
    phases = [make_phase(name=name, targets=targets) for name in ("warm-up", "main")]
    page = read(build_target_section(build_summary(targets=targets, phases=phases)))
    assert len(page.find("details")) == 2
    assert "Phase warm-up" in page.text
    assert "include the warm-up" in page.text


def test_the_steps_of_each_target_are_folded() -> None:
    """A run without named targets has the table of the run alone."""
    summary = build_summary(timing_ms=STEPS, targets=[make_target(timing_ms=STEPS)])
    assert len(read(build_step_section(summary)).find("details")) == 1
    assert not read(build_step_section(msgspec.structs.replace(summary, targets=[]))).find("details")


def test_a_run_without_responses_says_so() -> None:
    """The account of outcomes is there in any case."""
    text = " ".join(read(build_outcome_section(build_summary(statuses={}))).text.split())
    assert "Responses by status None." in text


def test_many_workers_are_folded_under_their_spread() -> None:
    """Few have a row each."""
    assert read(build_worker_section(build_workers(OPEN_WORKERS))).find("details") == []
    page = read(build_worker_section(build_workers(OPEN_WORKERS + 1)))
    assert len(page.find("details")) == 1
    assert len(page.find("tr")) == 1 + 3 + 1 + OPEN_WORKERS + 1
    assert "17 workers, none lost." in page.text
