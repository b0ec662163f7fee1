from tests.unit.cli.report.conftest import Page

from oku_cli.report.bars import BarRow, build_bar, build_bars


def test_a_bar_that_is_not_zero_is_visible() -> None:
    """One of a million is drawn as if it were one of two hundred."""
    assert "width:0.50%" in build_bar(1, 10**6, "ok")
    assert "width:0.00%" in build_bar(0, 10**6, "ok")
    assert "width:0.00%" in build_bar(0, 0, "ok")


def test_a_row_may_be_a_part_of_the_one_above() -> None:
    """It is marked as such; the share is that of the whole."""
    page = Page(
        build_bars(
            "Outcomes",
            ("outcome", "requests"),
            [BarRow("all", 8, "ok"), BarRow("some", 2, "ok", is_part=True)],
            8,
        )
    )
    assert page.faults == []
    assert [row.get("class") for row in page.find("tr")] == [None, None, "part"]
    assert page.text.endswith("some225.00 %")


def test_a_table_without_rows_says_so() -> None:
    """It has no note either."""
    assert Page(build_bars("Statuses", ("status", "requests"), [], 0, "a note")).text == "StatusesNone."
