import pytest

from oku_core.digits import MOST_SQLITE, parse_digits


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("007", 7), (b"12", 12), (f"{MOST_SQLITE}", MOST_SQLITE)]
)
def test_digits_are_a_number(text: str | bytes, number: int) -> None:
    """Leading zeros are allowed."""
    assert parse_digits(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "+1",
        "-1",
        "1_0",
        "1.0",
        "1e3",
        "٣",
        "²",
        "x",
        "nan",
        b"",
        b"\xb2",
        "9" * 19,
        "9" * 5000,
    ],
)
def test_other_text_that_python_reads_as_a_number_is_refused(text: str | bytes) -> None:
    """So is a number too large for a column of the ledger."""
    assert parse_digits(text) is None


def test_a_number_has_a_bound() -> None:
    """It may be reached."""
    assert [parse_digits(f"{number}", 10) for number in (9, 10, 11)] == [9, 10, None]
