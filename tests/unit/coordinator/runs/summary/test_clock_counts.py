import math

import pytest
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.storage.schedule_records import Course, PeriodRecord
from oku_coordinator.runs.summary.clock_counts import ClockCounts
from oku_core.results.series import SeriesRow


def build_rows(*rows: tuple[int, int, int], seconds: int = 1) -> list[SeriesRow]:
    """Rows of a second, or of several, with what was sent and what was answered in them."""
    return [
        SeriesRow(second=second, seconds=seconds, sent=sent, outcomes=make_counts(answered, timeout=3))
        for second, sent, answered in rows
    ]


def test_whole_seconds_count_exactly() -> None:
    """What ends after the time of the run is not of it, and what is no answer does not count."""
    rows = build_rows((100, 400, 280), (101, 400, 280), (102, 400, 280), (103, 0, 360))
    counts = ClockCounts(Course(rows, [PeriodRecord(100.0, 0.0, 3.0)], math.inf), 3.0)
    assert counts.count(0.0, 3.0) == (3.0, 1200, 840)
    assert counts.count(1.0, 2.0) == (1.0, 400, 280)
    assert counts.count(3.0, 9.0).sent == 0


def test_a_second_that_is_cut_counts_by_the_time_in_which_the_run_was_active() -> None:
    """A run that starts in the middle of a second has all of it; one phase of two has its part."""
    rows = build_rows((100, 50, 50), (101, 100, 100), (102, 25, 25))
    counts = ClockCounts(Course(rows, [PeriodRecord(100.5, 0.0, 1.75)], math.inf), 1.75)
    assert counts.count(0.0, 1.75) == pytest.approx((1.75, 175, 175))
    assert counts.count(0.0, 1.0) == pytest.approx((1.0, 100, 100))
    assert counts.count(1.0, 1.75) == pytest.approx((0.75, 75, 75))


def test_a_pause_is_no_time() -> None:
    """What was due again after it was sent in both periods."""
    rows = build_rows((100, 10, 10), (101, 10, 10), (200, 10, 10), (201, 10, 10))
    periods = [PeriodRecord(100.0, 0.0, 2.0), PeriodRecord(200.0, 2.0, 4.0)]
    counts = ClockCounts(Course(rows, periods, math.inf), 4.0)
    assert counts.count(0.0, 4.0) == (4.0, 40, 40)
    assert counts.count(1.0, 3.0) == (2.0, 20, 20)


def test_while_a_run_goes_on_only_what_workers_have_told_of_counts() -> None:
    """The last seconds would look slow."""
    rows = build_rows((100, 10, 10), (101, 10, 10), (102, 3, 1))
    counts = ClockCounts(Course(rows, [PeriodRecord(100.0, 0.0)], 102.0), 10.0)
    assert counts.count(0.0, 4.7) == (2.0, 20, 20)


def test_seconds_that_were_merged_are_shared() -> None:
    """Those of a long run are longer."""
    rows = build_rows((100, 40, 40), (104, 80, 80), seconds=4)
    counts = ClockCounts(Course(rows, [PeriodRecord(100.0, 0.0, 8.0)], math.inf), 8.0)
    assert counts.count(2.0, 6.0) == (4.0, 60, 60)


def test_before_the_first_answer_could_come_there_is_none() -> None:
    """At most half of the time is left out, however slow the target is."""
    counts = ClockCounts(Course([], [PeriodRecord(100.0, 0.0, 4.0)], math.inf), 4.0)
    found = counts.count(0.0, 4.0)
    assert (found.drop_dead_time(1.0), found.drop_dead_time(9.0)) == (3.0, 2.0)
