import json

from hypothesis import given
from hypothesis import strategies as st

from oku_core.errors import format_value

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def test_a_value_is_shown_as_it_was_written() -> None:
    """Plain text stands as it is, what could mislead is quoted, YAML's words are YAML's."""
    cases: list[tuple[object, str]] = [
        ("10 s", "10 s"), ("", "''"), ("x", "x"), ("x" * 80, "x" * 80), (" 10s", "' 10s'"),
        ("a\nb", r"'a\nb'"), ("a\u2028b", r"'a\u2028b'"), (None, "null"), (True, "true"), (False, "false"),
        (0, "0"), (1, "1"), (0.5, "0.5"), ([1, None], "[1, None]"), ({"a": 1}, "{'a': 1}"),
    ]  # fmt: skip
    for value, shown in cases:
        assert format_value(value) == shown
    # A number that python does not write is described.
    assert format_value(10**5000) == format_value([10**5000]) == "a number of thousands of digits"


@given(JSON_VALUES)
def test_a_value_takes_one_line(value: object) -> None:
    """No value breaks the line of an error or takes the terminal over, however it is made."""
    shown = format_value(value)
    assert shown
    assert shown.isprintable()
    assert len(shown) < 1500


@given(st.text(min_size=81) | st.lists(st.integers(), min_size=50))
def test_a_long_value_is_cut(value: object) -> None:
    """A value too long for a line is shown in part."""
    assert len(format_value(value)) < len(json.dumps(value))
    assert "..." in format_value(value)
