from collections.abc import Callable

import pytest
from tests.unit.cli.report.conftest import Page, make_lease

from oku_cli.report.charts.coverage_chart import build_lease_chart, build_strips
from oku_cli.report.charts.over_time import build_run_over_time
from oku_cli.report.charts.timeline import build_timeline
from oku_cli.report.history_reader import RunHistory
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import LeaseState

MakeHistory = Callable[..., RunHistory]
SLICES = [
    Slice(0, 600, SliceState.ACCOUNTED),
    Slice(600, 700, SliceState.LEASED),
    Slice(700, 1000, SliceState.PENDING),
]
LOST = {"state": LeaseState.EXPIRED, "reason": "worker_lost"}


def test_the_request_space_is_drawn_from_left_to_right(make_history: MakeHistory) -> None:
    """What is accounted, leased and pending is drawn where it lies."""
    page = Page(build_strips(make_history(slices=SLICES)))
    assert page.faults == []
    assert "600 accounted, 100 leased, 300 pending" in page.text
    classes = [rect["class"] for rect in page.find("rect")]
    assert classes == ["accounted"] * 30 + ["leased"] * 5 + ["pending"] * 15
    # What a time left over comes after what is accounted.
    slices = [Slice(0, 900, SliceState.ACCOUNTED), Slice(900, 1000, SliceState.UNUSED)]
    assert "900 accounted, 100 unused." in Page(build_strips(make_history(slices=slices))).text


def test_what_may_have_been_sent_again_has_a_strip_of_its_own(make_history: MakeHistory) -> None:
    """The strip is there only if there is something, however many leases were taken back."""
    assert len(Page(build_strips(make_history(leases=[make_lease(0, 100, 0, 1, **LOST)]))).find("svg")) == 1
    page = Page(build_strips(make_history(again=[(0, 60), (60, 100)])))
    assert len(page.find("svg")) == 2
    assert sum(rect["class"] == "again" for rect in page.find("rect")) == 5


def test_leases_are_drawn_by_state(make_history: MakeHistory) -> None:
    """Active ones reach up to the present."""
    leases = [
        make_lease(0, 100, 0, 5, **LOST),
        make_lease(0, 100, 5, 9),
        make_lease(100, 200, 8, None, state=LeaseState.ACTIVE),
    ]
    history = make_history(leases=leases)
    timeline = build_timeline(history.samples, history.leases.bands)
    assert timeline is not None
    chart = build_lease_chart(history, build_run_over_time(history.samples, timeline, []))
    assert chart is not None
    assert [key.label for key in chart.legend] == ["active: 1", "closed: 1", "taken back: 1"]
    assert chart.y.ticks[-1].label == "1k"


@pytest.mark.heavy
def test_a_chart_of_very_many_leases_stays_small(make_history: MakeHistory) -> None:
    """Its size is bounded, and the note says that a box may be several leases."""
    leases = [make_lease(i // 100, i // 100 + 1, i / 10_000, i / 10_000 + 0.01) for i in range(100_000)]
    history = make_history(leases=leases)
    timeline = build_timeline(history.samples, history.leases.bands)
    assert timeline is not None
    chart = build_lease_chart(history, build_run_over_time(history.samples, timeline, []))
    assert chart is not None
    assert sum(map(len, chart.shapes)) < 100_000
    assert [key.label for key in chart.legend] == ["closed: 100,000"]
    assert chart.note.startswith("Each box is one or more leases")
