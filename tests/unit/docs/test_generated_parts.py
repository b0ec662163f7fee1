import pytest
from docs.tools.generated_parts import build_table, replace_parts


def test_what_stands_between_markers_is_replaced_and_nothing_else() -> None:
    """What was generated before goes, what a person wrote stays."""
    page = "Before.\n<!-- rows:begin -->\nold\n<!-- rows:end -->\nAfter.\n"
    assert replace_parts(page, {"rows": "new"}) == page.replace("old", "new")
    # A page without its markers is an error. A part that has nowhere to go is not lost in silence.
    with pytest.raises(ValueError, match="unpack"):
        replace_parts("Text.\n", {"rows": "new"})
    # Cells hold what would end them. A bar in a cell is escaped, an empty cell is one blank.
    assert build_table(["a", "b"], [["x|y", ""]]) == "| a | b |\n| --- | --- |\n| x\\|y | |"
