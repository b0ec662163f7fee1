import pytest

from oku_core.accounting.run_reference import check_reference, may_mean


@pytest.mark.parametrize("reference", ["", " ", "\t\n", "a\nb", "\0", "\udcff"])
def test_what_can_be_no_name_stands_for_no_run(reference: str) -> None:
    """An empty text would be a part of every id."""
    with pytest.raises(ValueError, match=r"is empty; give latest|is not printable text"):
        check_reference(reference)


def test_a_text_may_mean_a_run_by_its_name_or_a_part_of_its_id() -> None:
    """A part of a name means nothing."""
    check_reference("my run")
    assert may_mean("my run", "1-ab", "my run")
    assert may_mean("-a", "1-ab", "my run")
    assert may_mean("1-ab", "1-ab", "")
    assert not may_mean("my", "1-ab", "my run")
