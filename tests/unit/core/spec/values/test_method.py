import re

import pytest

from oku_core.spec.values.method import parse_method


@pytest.mark.parametrize(
    ("value", "method"), [("GET", "GET"), ("get", "GET"), ("Post", "POST"), ("PURGE", "PURGE")]
)
def test_a_method_is_sent_in_capitals(value: str, method: str) -> None:
    """Users may write it in lower case, and unknown methods are accepted."""
    assert parse_method(value) == method


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", "'' is not a method such as GET or POST"),
        ("GET /", "GET / is not a method such as GET or POST"),
        ("GET\r\n", r"'GET\r\n' is not a method such as GET or POST"),
        ("connect", "connect is not a method such as GET or POST"),
        ("po\u017ft", "po\u017ft is not a method such as GET or POST"),
        ("ß", "ß is not a method such as GET or POST"),
        (True, "true is not text, put it in quotes"),
        (None, "null is not text"),
        (["GET"], "['GET'] is not text"),
    ],
)
def test_an_invalid_method_is_named(value: object, fault: str) -> None:
    """Letters that are ASCII only in upper case, and what YAML makes of `on`, are not methods."""
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        parse_method(value)
