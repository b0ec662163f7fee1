import pytest

from oku_core.accounting.run_reference import check_reference


@pytest.mark.parametrize("reference", ["", " ", "\t\n", "a\nb", "\0", "\udcff"])
def test_what_can_be_no_name_stands_for_no_run(reference: str) -> None:
    """An empty text would be a part of every id."""
    with pytest.raises(ValueError, match=r"is empty; give latest|is not printable text"):
        check_reference(reference)
