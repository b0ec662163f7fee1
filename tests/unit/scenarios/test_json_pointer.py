import pytest

from oku.json_pointer import find_value

DOCUMENT = {
    "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5,
    'k"l': 6, " ": 7, "m~n": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2),
        ("/e^f", 3), ("/g|h", 4), ("/i\\j", 5), ('/k"l', 6), ("/ ", 7), ("/m~0n", 8),
    ],
)  # fmt: skip
def test_the_examples_of_the_rfc(pointer: str, value: object) -> None:
    """RFC 6901, section 5."""
    assert find_value(DOCUMENT, pointer) == value


@pytest.mark.parametrize("pointer", ["/none", "/foo/2", "/foo/-", "/foo/01", "/foo/x", "/foo/0/a", "/foo/-1"])
def test_where_there_is_nothing(pointer: str) -> None:
    """An index has no zeros before it, and counts from the beginning."""
    with pytest.raises(LookupError):
        find_value(DOCUMENT, pointer)


def test_what_is_no_pointer() -> None:
    """It begins with a slash."""
    with pytest.raises(ValueError, match=r"'foo' is not a JSON pointer such as /items/0/id"):
        find_value(DOCUMENT, "foo")
