import io
from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.summaries import build_summary, make_inner, make_outcomes, make_phase

from oku_cli.terminal.console import Terminal
from oku_cli.terminal.table_view import LONGEST_NAME, TableView
from oku_core.summary.judgement import Judgement
from oku_core.summary.latency_summary import LatencySummary
from oku_core.tables.part_tables import build_names, build_phases
from oku_core.tables.table import (
    BarPart,
    Cell,
    Column,
    Quantity,
    Rank,
    Role,
    Row,
    Table,
    Value,
    build_row,
    build_table,
)

Render = Callable[..., list[str]]
NAME = Column(key="name", head="name", role=Role.NAME)
COUNT = Column(key="count", head="count", quantity=Quantity.COUNT)
TEXT = Column(key="reason", head="reason", role=Role.TEXT)
BAR = Column(key="bar", head="", role=Role.BAR)
DETAIL = Column(key="detail", head="detail", role=Role.TEXT, rank=Rank.DETAIL)
TIMES = {f"{time}_ms": LatencySummary(p50=1.5, p99=20.0, max=30.0) for time in ("response_time", "lateness")}


def test_bars_are_drawn_where_there_is_room_for_them(render: Render) -> None:
    """The longest is full, and one too small for its length is visible; in little room they are left out."""
    rows: list[list[Value]] = [
        ["a", Cell(parts=[BarPart("ok", 0.5), BarPart("lost", 0.5)]), 9],
        ["b", Cell(parts=[BarPart("ok", 1e-9)]), 1],
        ["c", Cell(), 0],
    ]
    table = build_table("t", "", [NAME, msgspec.structs.replace(BAR, rank=Rank.SPARE), COUNT], rows)
    view = TableView(table, has_heads=False, bar_columns=8)
    assert [line.split() for line in render(view)] == [["a", "████████", "9"], ["b", "▏", "1"], ["c", "0"]]
    assert [line.split() for line in render(view, 10)] == [["a", "████", "9"], ["b", "▏", "1"], ["c", "0"]]
    assert [line.split() for line in render(view, 7)] == [["a", "9"], ["b", "1"], ["c", "0"]]


def test_numbers_are_aligned_to_the_right_and_bars_and_details_left_out(render: Render) -> None:
    """Heads are shown unless they are not wanted."""
    table = build_table(
        "t", "T", [NAME, COUNT, BAR, DETAIL], [["a", 1200, Cell(), "x"], ["b", 7, Cell(), "y"]]
    )
    assert [line.rstrip() for line in render(TableView(table))] == [
        "name  count",
        "a     1,200",
        "b         7",
    ]
    assert [line.rstrip() for line in render(TableView(table, has_heads=False))] == ["a  1,200", "b      7"]
    # A part is indented under its row. As the causes of what was not sent are.
    columns = [NAME, COUNT]
    rows = [build_row(columns, ["all", 8]), build_row(columns, ["some", 2], is_part=True)]
    table = Table(name="t", title="", columns=columns, rows=rows)
    assert [line.rstrip() for line in render(TableView(table, has_heads=False))] == ["all     8", "  some  2"]


def test_foreign_text_and_judgements_change_nothing_but_colours(render: Render) -> None:
    """No meaning is carried by colour alone: the text is the same."""
    row = Row([Cell(text="a"), Cell(text="9", judgement=Judgement.BAD)])
    view = TableView(Table(name="t", title="", columns=[NAME, COUNT], rows=[row]))
    assert render(view)[1].split() == ["a", "9"]
    # Foreign text cannot move the cursor. Names and reasons come from elsewhere.
    table = build_table("t", "", [NAME, TEXT], [["a\x1b[1m", "b\nc"]])
    assert render(TableView(table))[1].split() == ["a␛[1m", "b␊c"]


def test_spare_columns_are_left_out_first_and_no_line_is_too_wide(render: Render) -> None:
    """The name, its requests and the 99th percentile stay."""
    inner = make_inner(name="GET /orders/[id]", requests=10**7, outcomes=make_outcomes(ok=10**7))
    kept = {}
    for width in (100, 84, 72, 62, 56):
        lines = render(TableView(build_names([inner])), width=width)
        assert max(map(len, lines)) <= width
        kept[width] = " ".join(lines[0].split())
    assert kept == {
        100: "name requests ok failed rate p50 p95 p99 bytes",
        84: "name requests ok failed rate p50 p95 p99",
        72: "name requests ok failed rate p50 p99",
        62: "name requests ok failed rate p99",
        56: "name requests ok failed p99",
    }


def test_groups_of_columns_continue_below_where_they_do_not_fit(render: Render) -> None:
    """Each group has a head; the name stands in both parts."""
    phase = make_phase(due=10**6, planned_rps=510.0, **TIMES)
    wide = render(TableView(build_phases(build_summary(phases=[phase]))), width=140)
    assert [line.split()[0] for line in wide] == ["latency", "phase", "soak"]
    lines = render(TableView(build_phases(build_summary(phases=[phase]))), width=80)
    assert [line.split() for line in lines] == [
        ["phase", "due", "completed", "ok", "planned/s", "sent/s", "completed/s"],
        ["soak", "1,000,000", "990", "100", "%", "510", "500", "480"],
        [],
        ["latency", "response", "time", "lateness"],
        ["phase", *["p50", "p99"] * 3],
        ["soak", *["1.50", "ms", "20.0", "ms"] * 3],
    ]
    ends = [lines[4].index("p99", place) + 3 for place in (0, 30, 48)]
    heads = ("latency", "response time", "lateness")
    assert [lines[3].index(head) + len(head) for head in heads] == ends
    narrow = render(TableView(build_phases(build_summary(phases=[phase]))), width=46)
    assert [line.split() for line in narrow[-2:]] == [
        ["phase", *["p99"] * 3],
        ["soak", *["20.0", "ms"] * 3],
    ]


def test_long_names_and_texts_are_folded(render: Render) -> None:
    """The end of a pod's name tells it apart, and the numbers keep their places."""
    name = "GET /a/very/long/path/to/{sku}/reviews"
    table = build_table("t", "", [NAME, COUNT], [[name, 100]])
    lines = render(TableView(table), width=20)
    assert "".join(line.split("  ")[0] for line in lines[1:]).replace(" 100", "") == name.replace(" ", "")
    [_, line] = render(TableView(table, longest_name=LONGEST_NAME))
    assert line.split("  ")[0] == "GET /a/very/…sku}/reviews"
    # A long text is broken between words. The columns beside it stay aligned.
    table = build_table("t", "", [NAME, TEXT, COUNT], [["a", "no answer " * 5, 3]])
    lines = [line.rstrip() for line in render(TableView(table), width=44)]
    assert lines[1] == "a     no answer no answer no answer        3"
    assert lines[2].strip() == "no answer no answer"


def test_where_not_even_the_essential_fits_each_row_is_a_flow(render: Render) -> None:
    """No number is cut."""
    columns = [NAME, *(Column(key=str(n), head=f"count {n}", quantity=Quantity.COUNT) for n in range(5))]
    table = build_table("t", "", columns, [["a", *[10**9] * 5]])
    lines = render(TableView(table), width=40)
    assert "".join(lines).count("1,000,000,000") == 5
    assert max(map(len, lines)) <= 40


CELLS = st.text("abc …", max_size=40)
ROWS = st.lists(st.tuples(CELLS, CELLS, st.integers(0, 10**12)), max_size=5)


@given(ROWS, st.integers(40, 120))
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(
    rows: list[tuple[str, str, int]], width: int
) -> None:
    """Whatever the texts are."""
    console = Terminal(file=io.StringIO(), record=True, width=width, force_terminal=True)
    console.print(TableView(build_table("t", "", [NAME, TEXT, COUNT], rows)))
    text = console.export_text()
    assert all(len(line) <= width for line in text.splitlines())
    assert all(f"{count:,}" in text for _, _, count in rows)
