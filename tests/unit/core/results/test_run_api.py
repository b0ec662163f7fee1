import pytest

from oku_core.results.run_api import (
    LONGEST_KEY,
    check_idempotency_key,
    check_reference,
    quote_idempotency_key,
    read_idempotency_key,
)

KEYS = ("a", "nightly-2026-11-28", "team/load:7#1?x=y&z", "!~'{}[]()", "x" * LONGEST_KEY)


def test_a_key_comes_back_from_the_header_as_it_was() -> None:
    """In quotes, as the draft has it, and without them, as most callers send it."""
    for key in KEYS:
        assert check_idempotency_key(key) == key
        for value in (quote_idempotency_key(key), key, f"  {key} "):
            assert read_idempotency_key(value) == key


def test_a_key_that_would_need_an_escape_is_refused() -> None:
    """So is one that a log or a terminal cannot show, and two of them."""
    for wrong in ("", " ", "a b", "a,b", 'a"b', "a\\b", "a\tb", "a\n", "\x00", "\x7f", "ä", "٣", "x" * 256):
        with pytest.raises(ValueError, match="is not a key of 1 to 255 printable ASCII characters, without"):
            check_idempotency_key(wrong)
    for value in ("", '"', '""', '"a', 'a"', '"a", "b"', "a, b", '" a"'):
        with pytest.raises(ValueError, match="is not a key"):
            read_idempotency_key(value)
    # A refusal shows a long key only in part. It is one line.
    with pytest.raises(ValueError, match="is not a key") as refused:
        check_idempotency_key("x" * 100_000)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("reference", ["", " ", "\t\n", "a\nb", "\0", "\udcff"])
def test_what_can_be_no_name_stands_for_no_run(reference: str) -> None:
    """An empty text would be a part of every id."""
    with pytest.raises(ValueError, match=r"is empty; give latest|is not printable text"):
        check_reference(reference)
