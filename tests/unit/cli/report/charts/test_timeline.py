import pytest
from tests.unit.cli.report.conftest import START, band_leases, make_lease, make_sample

from oku_cli.report.charts.timeline import (
    MOST_COLUMNS,
    PAUSE_S,
    Timeline,
    build_columns,
    build_timeline,
    clip_start,
    cut_at_gaps,
)
from oku_core.accounting.lease_state import LeaseState
from oku_core.tables.formatting import format_since


def build(*spans: tuple[float, float]) -> Timeline:
    """Build a timeline from spans in seconds after `START`."""
    return Timeline(tuple((START + start, START + stop) for start, stop in spans))


def test_positions_are_proportional_to_time() -> None:
    """Times outside the timeline are clamped to its ends."""
    timeline = build((0, 100))
    assert [timeline.place(START + at) for at in (-5, 0, 25, 100, 999)] == [0, 0, 0.25, 1, 1]
    # A pause is a narrow band however long it was.
    timeline = build((0, 100), (100_000, 100_100))
    ((left, right),) = timeline.pauses
    assert right - left == pytest.approx(0.03)
    assert timeline.place(START + 100) == pytest.approx(left)
    assert timeline.place(START + 100_000) == pytest.approx(right)
    assert left < timeline.place(START + 50_000) < right
    assert timeline.place(START + 100_100) == pytest.approx(1)
    # Many pauses leave room for the run. Together they take less than a third of the width.
    timeline = build(*((1000 * n, 1000 * n + 10) for n in range(50)))
    assert sum(right - left for left, right in timeline.pauses) <= 0.31


@pytest.mark.parametrize("length_s", [0.4, 1, 7, 61, 3600, 86_400, 3_000_000])
def test_the_axis_has_few_ticks(length_s: float) -> None:
    """They ascend, and each label occurs once."""
    ticks = build((0, length_s)).build_ticks()
    assert 1 <= len(ticks) <= 10
    assert [tick.at for tick in ticks] == sorted({tick.at for tick in ticks})
    assert len({tick.label for tick in ticks}) == len(ticks)


def test_samples_define_the_spans() -> None:
    """Samples far apart are in separate spans; a missing second does not split one."""
    samples = [make_sample(second) for second in (1, 2, 4, 5 + PAUSE_S * 2)]
    timeline = build_timeline(samples, [])
    assert timeline is not None
    assert timeline.spans == ((START, START + 4), (START + 4 + PAUSE_S * 2, START + 5 + PAUSE_S * 2))
    # Without samples closed leases define the spans.
    leases = [make_lease(0, 9, 1, 6), make_lease(9, 12, 3, 9999, state=LeaseState.EXPIRED)]
    timeline = build_timeline([], band_leases(leases).bands)
    assert timeline is not None
    assert timeline.spans == ((START + 1, START + 6),)
    assert build_timeline([], band_leases(leases[1:]).bands) is None


def test_samples_become_columns_and_no_request_is_lost() -> None:
    """Each sample is a column."""
    samples = [make_sample(second) for second in range(1, 100)]
    timeline = build_timeline(samples, [])
    assert timeline is not None
    assert build_columns(samples, timeline) == samples
    # Many samples become columns and no request is lost. The counts of merged samples are added up.
    samples = [make_sample(second, [1000, 2000]) for second in range(1, 3601)]
    timeline = build_timeline(samples, [])
    assert timeline is not None
    columns = build_columns(samples, timeline)
    assert MOST_COLUMNS / 4 < len(columns) <= MOST_COLUMNS + 1
    assert sum(column.requests_ended for column in columns) == 7200
    assert sum(column.seconds for column in columns) == pytest.approx(3600)
    # A short remainder is merged into the column before. A tenth of a second says nothing about the rate.
    samples = [make_sample(1), make_sample(2), make_sample(2.1, seconds=0.1)]
    timeline = build_timeline(samples, [])
    assert timeline is not None
    assert [(column.requests_ended, column.seconds) for column in build_columns(samples, timeline)] == [
        (1, 1.0),
        (2, pytest.approx(1.1)),
    ]


def test_columns_do_not_reach_over_a_pause() -> None:
    """Lines break at the pause."""
    samples = [make_sample(float(second)) for second in (*range(1, 800), *range(5000, 5800))]
    timeline = build_timeline(samples, [])
    assert timeline is not None
    columns = build_columns(samples, timeline)
    before, after = cut_at_gaps(columns, timeline)
    assert columns[before[-1]].at < START + 800
    assert columns[after[0]].at - columns[after[0]].seconds >= START + 4999


@pytest.mark.parametrize(
    ("ends", "seconds", "groups"),
    [
        ((1, 2, 4.9, 5.9), 1.0, [[0, 1, 2, 3]]),
        ((1, 2, 9, 10), 1.0, [[0, 1], [2, 3]]),
        ((30, 65, 130), 30.0, [[0, 1], [2]]),
        ((60, 120, 120 + 60 + PAUSE_S + 5), 60.0, [[0, 1], [2]]),
    ],
)
def test_lines_break_where_samples_are_missing(
    ends: tuple[float, ...], seconds: float, groups: list[list[int]]
) -> None:
    """A late tick or a small gap between long samples does not break a line; every pause does."""
    samples = [make_sample(at, seconds=seconds) for at in ends]
    timeline = build_timeline(samples, [])
    assert timeline is not None
    assert list(cut_at_gaps(samples, timeline)) == groups
    assert list(cut_at_gaps([], timeline)) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (40, "40 s"),
        (150, "2:30 min"),
        (900, "15 min"),
        (3600, "1 h"),
        (9000, "2 h 30"),
        (3661, "1 h 01:01"),
    ],
)
def test_times_since_the_start_are_short(seconds: float, text: str) -> None:
    """They have one or two units."""
    assert format_since(seconds) == text


def test_the_axis_begins_with_the_clock_of_the_run() -> None:
    """While it waits for workers, nothing ends; the second in which it begins is shorter."""
    samples = [make_sample(1, []), make_sample(2, []), make_sample(3), make_sample(4)]
    clipped = clip_start(samples, START + 2.25)
    assert [(each.at - START, each.seconds) for each in clipped] == [(3, 0.75), (4, 1.0)]
    assert clip_start(samples, START - 9) == samples
    assert clip_start(samples[:2], START + 2.25) == []
    # A fraction of a second belongs to the next one. A few requests in 20 ms are no rate.
    first, second = clip_start([make_sample(1), make_sample(2), make_sample(3)], START + 0.875)
    assert (first.seconds, first.outcomes[0], second.outcomes[0]) == (1.125, 2, 1)
    (only,) = clip_start([make_sample(1)], START + 0.875)
    assert only.seconds == 1.0
