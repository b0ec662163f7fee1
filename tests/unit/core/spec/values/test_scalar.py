import re

import pytest

from oku_core.spec.values.scalar import parse_text


@pytest.mark.parametrize("text", ["", "{}", '{"id": {i}}', "a\nb\x00", "日本"])
def test_text_is_any_text(text: str) -> None:
    """A body may contain line breaks, braces and control characters."""
    assert parse_text(text) == text


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "null is not text"),
        (True, "true is not text, put it in quotes"),
        (1_000, "1000 is not text, put it in quotes"),
        (0.5, "0.5 is not text, put it in quotes"),
        (["a"], "['a'] is not text"),
        ({"a": 1}, "{'a': 1} is not text"),
        ("\udcff", r"'\udcff' has characters that UTF-8 cannot encode"),
    ],
)
def test_text_is_not_guessed(value: object, fault: str) -> None:
    """YAML may have changed what the user wrote: 1_000 would be sent as 1000."""
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        parse_text(value)
