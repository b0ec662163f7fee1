import re

import pytest

from oku_core.spec.values.scalar import (
    LONGEST_NAME,
    PlainScalar,
    parse_method,
    parse_name,
    parse_scalar,
    parse_text,
    read_json_value,
)


def test_text_is_not_guessed() -> None:
    """YAML may have changed what the user wrote: 1_000 would be sent as 1000."""
    cases: list[tuple[object, str]] = [
        (None, "null is not text"),
        (True, "true is not text, put it in quotes"),
        (1_000, "1000 is not text, put it in quotes"),
        (0.5, "0.5 is not text, put it in quotes"),
        (["a"], "['a'] is not text"),
        ({"a": 1}, "{'a': 1} is not text"),
        ("\udcff", r"'\udcff' has characters that UTF-8 cannot encode"),
    ]
    for value, fault in cases:
        with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
            parse_text(value)
    # Text is any text. A body may contain line breaks, braces and control characters.
    for text in ["", "{}", '{"id": {i}}', "a\nb\x00", "日本"]:
        assert parse_text(text) == text
    # Text that stood without quotes is text. Only where JSON is written does it matter where it stood.
    assert type(parse_text(PlainScalar("a"))) is str
    assert type(parse_scalar(PlainScalar("7"))) is str


def test_a_scalar_without_quotes_is_a_number_if_json_would_write_it_so() -> None:
    """In quotes it is text; so is what YAML 1.1 would take for octal, sexagesimal, a date or a switch."""
    cases: list[tuple[str, object]] = [
        ("17", 17), ("-1", -1), ("-0", 0), ("1.10", 1.1), ("1e3", 1000.0), ("1E-2", 0.01),
        ("9" * 400, 10**400 - 1), ("010", "010"), ("+1", "+1"), (".5", ".5"), ("1.", "1."),
        ("1_000", "1_000"), ("0x1", "0x1"), ("2020-01-01", "2020-01-01"), (".inf", ".inf"), ("no", "no"),
        ("٣", "٣"), ("", ""), ("1 ", "1 "),
    ]  # fmt: skip
    for text, value in cases:
        read = read_json_value(PlainScalar(text))
        assert (read, type(read)) == (value, type(value))
        assert read_json_value(text) == text
    other_cases: list[tuple[object, str]] = [
        (float("nan"), "nan cannot be written as JSON"),
        ([float("-inf")], "-inf cannot be written as JSON"),
        (PlainScalar("1e400"), "1e400 is too large for a number"),
        ({1: 2}, "1 is not text, put it in quotes"),
        ({"a": "\udcff"}, r"'\udcff' has characters that UTF-8 cannot encode"),
        ({"a": {1, 2}}, "{1, 2} cannot be written as JSON"),
    ]
    for value, fault in other_cases:
        # What json cannot say is refused. None of it is changed without a word.
        with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
            read_json_value(value)
    # Json may be of any shape. Mappings, lists, and the constants of JSON stay what they are.
    document: object = {"a": [None, True, 1, 1.0, "x", {}], "b": {"": []}}
    assert read_json_value(document) == document
    assert read_json_value((1, 2)) == [1, 2]
    # Json is not nested without end. Nor has it numbers without end.
    deep: object = 1
    for _ in range(31):
        deep = [deep]
    assert read_json_value(deep) == deep
    with pytest.raises(ValueError, match=r"^is nested more than 32 deep$"):
        read_json_value([deep])
    with pytest.raises(ValueError, match=r" has 401 digits; at most 400 are allowed$"):
        read_json_value(PlainScalar("1" * 401))


def test_a_name_is_a_printable_line() -> None:
    """It may be empty, and have up to a hundred characters."""
    for name in ["", "night run", "日本 7 %", "x" * LONGEST_NAME, "/{i}"]:
        assert parse_name(name) == name
    for name in ["a\nb", "a\tb", "\x1b[31m", "x" * (LONGEST_NAME + 1), "a\u202eb"]:
        # Nothing that would disturb a terminal is a name. Names are shown wherever figures are.
        with pytest.raises(ValueError, match=r"is not a name of up to 100 printable characters$"):
            parse_name(name)


def test_a_method_is_sent_in_capitals() -> None:
    """Users may write it in lower case, and unknown methods are accepted."""
    for value, method in [("GET", "GET"), ("get", "GET"), ("Post", "POST"), ("PURGE", "PURGE")]:
        assert parse_method(value) == method
    cases: list[tuple[object, str]] = [
        ("", "'' is not a method such as GET or POST"),
        ("GET /", "GET / is not a method such as GET or POST"),
        ("GET\r\n", r"'GET\r\n' is not a method such as GET or POST"),
        ("connect", "connect is not a method such as GET or POST"),
        ("po\u017ft", "po\u017ft is not a method such as GET or POST"),
        ("ß", "ß is not a method such as GET or POST"),
        (True, "true is not text, put it in quotes"),
        (None, "null is not text"),
        (["GET"], "['GET'] is not text"),
    ]
    for wrong, fault in cases:
        # An invalid method is named.
        with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
            parse_method(wrong)
