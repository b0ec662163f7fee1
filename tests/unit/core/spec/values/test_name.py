import pytest

from oku_core.spec.values.name import LONGEST_NAME, parse_name


@pytest.mark.parametrize("name", ["", "night run", "日本 7 %", "x" * LONGEST_NAME, "/{i}"])
def test_a_name_is_a_printable_line(name: str) -> None:
    """It may be empty, and have up to a hundred characters."""
    assert parse_name(name) == name


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "\x1b[31m", "x" * (LONGEST_NAME + 1), "a\u202eb"])
def test_nothing_that_would_disturb_a_terminal_is_a_name(name: str) -> None:
    """Names are shown wherever figures are."""
    with pytest.raises(ValueError, match=r"is not a name of up to 100 printable characters$"):
        parse_name(name)
