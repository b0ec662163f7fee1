from tests.kit.runs.summaries import build_summary, make_outcomes, make_target
from tests.unit.cli.report.conftest import Page

from oku_cli.report.markup import (
    Html,
    build_folded_table,
    build_html_table,
    build_titled_table,
    element,
    join_html,
)
from oku_core.summary.judgement import Judgement
from oku_core.tables.part_tables import build_targets
from oku_core.tables.table import (
    Cell,
    Column,
    Quantity,
    Role,
    Table,
    Value,
    build_bar,
    build_row,
    build_table,
    cut_rows,
)


def test_text_is_escaped_in_markup_once() -> None:
    """This holds for children and attributes alike."""
    assert element("p", "<b>&", title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;&amp;</p>'
    # Markup is not escaped again. Elements can be nested.
    assert element("p", element("b", "<"), "<") == "<p><b>&lt;</b>&lt;</p>"
    assert isinstance(join_html("a", Html("<br>")), Html)
    # Attributes are named as in python. None and False leave an attribute out, and True gives it no value.
    assert element("a", class_="x", aria_label="y", id=None, hidden=True, open=False) == (
        '<a class="x" aria-label="y" hidden></a>'
    )


COLUMNS = [
    Column(key="name", head="name", role=Role.NAME),
    Column(key="count", head="count", quantity=Quantity.COUNT, detail="of all"),
    Column(key="bar", head="", role=Role.BAR),
]


def build(*values: Value) -> Table:
    """A table with one row."""
    return build_table("t", "Title", COLUMNS, [values], "a note")


def read(html: str) -> Page:
    """The table, as a browser takes it."""
    page = Page(html.replace("<", " <"))
    assert page.faults == []
    return page


def test_a_row_has_its_name_its_numbers_and_their_judgement() -> None:
    """Foreign text is text; what explains a name is in small print."""
    html = build_html_table(
        build(Cell(text="<b>", detail="5 timeout"), Cell(text="7", judgement=Judgement.BAD), Cell())
    )
    assert '<th scope="row">&lt;b&gt;<small>5 timeout</small></th>' in html
    assert '<td class="number bad">7</td>' in html
    assert '<th scope="col" class="number">count<small>of all</small></th>' in html
    # A part of a bar that is not zero is visible.
    spans = read(build_html_table(build("a", 1, build_bar([("ok", 1), ("timeout", 0)], 10**6)))).find("span")
    assert [(span["class"], span.get("style")) for span in spans] == [
        ("stacked-bar", None),
        ("bar ok", "width:0.50%"),
    ]
    # Groups of columns have a head above them. The columns before and after them have none.
    buy = make_target(name="<buy>", requests=500, outcomes=make_outcomes(ok=480, failed_check=15, timeout=5))
    page = read(build_html_table(build_targets(build_summary(targets=[make_target(), buy]))))
    text = " ".join(page.text.split())
    assert text.startswith("latency target requests ok failed rate p50 p95 p99 bytes item")
    assert "<buy> 5 timeout, 15 failed check 500" in text
    assert [head.get("colspan") for head in page.find("th")[:5]] == ["2", "1", "3", "3", "1"]
    # A title stands above a table and a note below it. Without rows it says so, and has no note.
    text = " ".join(read(build_titled_table(build("a", 1, Cell()))).text.split())
    assert text == "Title name count of all a 1 a note"
    assert (
        " ".join(read(build_titled_table(cut_rows(build("a", 1, Cell()), 0))).text.split()) == "Title None."
    )
    assert read(build_folded_table(build("a", 1, Cell()))).find("details")
    # A row may be a part of the one above. It is marked as such.
    rows = [build_row(COLUMNS, ["all", 8, Cell()]), build_row(COLUMNS, ["some", 2, Cell()], is_part=True)]
    page = read(build_html_table(Table(name="t", title="", columns=COLUMNS, rows=rows)))
    assert [row.get("class") for row in page.find("tr")] == [None, None, "part"]
