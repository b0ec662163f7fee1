from itertools import pairwise

import pytest
from tests.unit.cli.report.conftest import Page

from oku_cli.report.charts.chart import (
    Axis,
    Chart,
    Key,
    Mark,
    Series,
    build_chart,
    draw_area,
    draw_boxes,
    draw_line,
)
from oku_cli.report.charts.scale import AxisTick

CHART = Chart(
    id="c", title="Rate <x>", note="How it is read.", description="It rises.",
    shapes=[draw_line([(0, 0), (1, 1)], "p50")],
    x=Axis(
        title="time", ticks=[AxisTick(0, "0 s"), AxisTick(0.5, "5 s", is_minor=True), AxisTick(1, "10 s")]
    ),
    y=Axis(title="per second", ticks=[AxisTick(0, "0"), AxisTick(1, "10")]),
    legend=[Key("ok", "ok")],
    marks=[Mark(0.25, "lost", "worker <1> is dead")],
    bands=[(0.5, 0.6)],
    track="time",
    series=[Series("ok", "/s", [1.0, None])],
)  # fmt: skip


def test_a_chart_says_what_it_shows() -> None:
    """A chart describes itself in text, for those who see it and for screen readers."""
    page = Page(build_chart(CHART))
    assert page.faults == []
    (svg,) = page.find("svg")
    assert (svg["role"], svg["aria-labelledby"]) == ("img", "c-title c-desc")
    for text in ("Rate <x>", "How it is read.", "It rises.", "per second", "10 s"):
        assert text in page.text
    # Text stands outside the svg. The SVG is stretched, and text in it would be stretched with it.
    assert Page(build_chart(CHART)).find("text") == []
    # A mark shows its text. The text of an event is the title of its mark.
    (mark,) = Page(build_chart(CHART)).find("i")
    assert mark == {"class": "mark lost", "style": "left:25.00%", "title": "worker <1> is dead"}
    # Ticks that need room have classes of their own.
    classes = [span.get("class") for span in Page(build_chart(CHART)).find("span")]
    assert classes[-3:] == ["first", "minor", "last"]


def test_shapes_go_up_from_the_bottom() -> None:
    """Coordinates count from the bottom, but those of an SVG from the top."""
    assert 'd="M0 1000L500 0"' in draw_line([(0, 0), (0.5, 1)], "x")
    assert draw_area([(0, 1), (1, 1)], [(0, 0), (1, 0)], "x").count("L") == 3
    # Boxes that look the same are drawn once.
    drawn = draw_boxes([(0, 0.1, 0, 1), (0.0001, 0.1, 0, 1), (0.5, 0.5, 0, 1)], "x", snap=1, least=2)
    assert drawn.count("M") == 2
    assert "h2v1000" in drawn


@pytest.mark.parametrize("places", [(0.5, 0.5, 0.5), (1.0, 1.0, 0.99), (0.0, 0.01, 1.0)])
def test_labels_at_the_ends_of_lines_do_not_cover_each_other(places: tuple[float, ...]) -> None:
    """They are pushed apart and do not leave the chart at the top."""
    ends = [Key("x", f"end {number}", place) for number, place in enumerate(places)]
    page = Page(build_chart(Chart(**{**CHART.__dict__, "ends": ends})))
    bottoms = sorted(
        float((span["style"] or "").removeprefix("bottom:").removesuffix("%"))
        for span in page.find("span")
        if span.get("class") == "x"
    )
    assert len(bottoms) == 3
    assert bottoms[-1] <= 100
    assert all(upper - lower >= 7.4 for lower, upper in pairwise(bottoms))
