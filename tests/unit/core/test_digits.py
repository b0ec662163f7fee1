from oku_core.digits import MOST_SQLITE, parse_digits


def test_digits_are_a_number() -> None:
    """Leading zeros are allowed."""
    cases: list[tuple[str | bytes, int]] = [
        ("0", 0),
        ("007", 7),
        (b"12", 12),
        (f"{MOST_SQLITE}", MOST_SQLITE),
    ]
    for text, number in cases:
        assert parse_digits(text) == number
    other_cases: list[str | bytes] = [
        "", " 1", "1 ", "+1", "-1", "1_0", "1.0", "1e3", "٣", "²", "x", "nan", b"", b"\xb2", "9" * 19,
        "9" * 5000,
    ]  # fmt: skip
    for text in other_cases:
        # Other text that python reads as a number is refused.
        assert parse_digits(text) is None
    # A number has a bound. It may be reached.
    assert [parse_digits(f"{number}", 10) for number in (9, 10, 11)] == [9, 10, None]
