import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_cli.yaml_reader import MOST_ALIASED, YamlKind, decode_yaml, decode_yaml_or_json

KIND = YamlKind(deepest=20, read_plain=str, allows_aliases=True)


def build_bomb(*, merges: bool) -> str:
    """Six hundred bytes whose aliases stand for 9 ** 8 values, in lists or in merged mappings."""
    begin, item = ("a: &a {k: v}\n", "{{<<: [{}]}}") if merges else ("a: &a [x]\n", "[{}]")
    return begin + "".join(
        f"{new}: &{new} {item.format(', '.join([f'*{old}'] * 9))}\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )


REFUSED = {
    "alias bomb": (
        build_bomb(merges=False),
        f"line 7: *f: aliases stand for more than {MOST_ALIASED:,} values",
    ),
    "merge bomb": (
        build_bomb(merges=True),
        f"line 7: *f: aliases stand for more than {MOST_ALIASED:,} values",
    ),
    "one alias, many times": (
        "a: &a [1, 2, 3]\nb: [" + "*a, " * 300_000 + "*a]",
        "line 2: *a: aliases stand for",
    ),
    "recursive alias": ("a: &a [*a]", "line 1: *a: no value before it has this anchor"),
    "recursive mapping": ("a: &a {b: *a}", "line 1: *a: no value before it has this anchor"),
    "recursive merge": ("a: &a\n  <<: *a", "line 2: *a: no value before it has this anchor"),
    "unknown alias": ("a: *b", "line 1: *b: no value before it has this anchor"),
    "merge of text": ("<<: a", "line 1: <<: is not a mapping"),
    "merge of lists": ("a: &a [x]\nb: {<<: [*a]}", "line 2: <<: is not a mapping"),
    "deep lists": ("[" * 900, "line 1: is nested more than 20 deep"),
    "lists that are deeper than some parsers go": ("[" * 40_000, "line 1: is n"),
    "deep mappings": ("{a: " * 20_000, "line 1: is nested more than 20 deep"),
    "deep dashes": ("- " * 40_000 + "a", "line 1: is nested more than 20 deep"),
    "lists of aliases": (
        "a: &a [[[[[[[[[[x]]]]]]]]]]\nb: &b [[[[*a]]]]\nc: [[[[[*b]]]]]",
        "line 3: is nested more than 20 deep",
    ),
    "deep keys": ("? " * 40_000 + "a", "line 1: a key is not text"),
    "tag directives": (
        "".join(f"%TAG !{place}! a\n" for place in range(100_000)) + "---\na",
        "has more than 1,000 tag directives",
    ),
    "duplicate key": ("a: 1\na: 2", "line 2: a: is given twice"),
    "tag of Python": (
        "!!python/object/apply:os.system [id]",
        "line 1: !!python/object/apply:os.system: only tags",
    ),
    "set": ("!!set {a}", "line 1: !!set: only tags of JSON's types are allowed"),
    "two documents": ("a: 1\n---\nb: 1", "line 2: a second document begins"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_grows_or_goes_round_is_refused_at_once(text: str, message: str) -> None:
    """In one line, with the place, and within a second."""
    began = time.process_time()
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        decode_yaml(text.encode(), KIND)
    assert time.process_time() - began < 3
    assert str(caught.value).startswith(message)


def test_aliases_stand_for_the_values_before_them() -> None:
    """A name may be given anew; a mapping goes before what it merges, the first of that before the next."""
    text = """
a: &x {k: 1, l: 2}
b: &y {l: 3, m: 4}
c: {<<: [*x, *y], m: 5}
d: {k: 6, <<: *x}
e: &x [7]
f: *x
"""
    assert decode_yaml(text.encode(), KIND) == {
        "a": {"k": "1", "l": "2"}, "b": {"l": "3", "m": "4"}, "c": {"k": "1", "l": "2", "m": "5"},
        "d": {"k": "6", "l": "2"}, "e": ["7"], "f": ["7"],
    }  # fmt: skip
    # Tags of jsons types may be written. One of a number lets it be read as if it stood without quotes.
    kind = YamlKind(deepest=3, read_plain=int, allows_aliases=True)
    text = "{a: !!str 1, b: !!int '2', c: !!map {}, d: !!seq [], f: !!null '', <<: {g: 4}, '<<': 5}"
    values = {"a": "1", "b": 2, "c": {}, "d": [], "f": None, "g": 4, "<<": 5}
    assert decode_yaml(text.encode(), kind) == values


def test_a_text_may_be_json() -> None:
    """With tabs, which YAML does not take; what is JSON beyond the limits is not tried as YAML."""
    for mark in (b"", b"\xef\xbb\xbf"):
        assert decode_yaml_or_json(mark + b'{\n\t"a": "b"}', KIND) == {"a": "b"}
        assert decode_yaml_or_json(mark + b"{a: b}", KIND) == {"a": "b"}
        assert decode_yaml_or_json(mark + b"a: b", KIND) == {"a": "b"}
    with pytest.raises(ValueError, match=r"^a: is given twice$"):
        decode_yaml_or_json(b'{"a": 1, "a": 2}', KIND)
    with pytest.raises(ValueError, match=r"^is nested too deep$"):
        decode_yaml_or_json(b'{"a": ' * 100_000, KIND)


@given(st.binary() | st.text("-:[]{}&*!|>'\"%@`#?<, \n\tab01").map(str.encode))
def test_any_bytes_are_read_or_refused_in_a_line(content: bytes) -> None:
    """They never raise anything else."""
    told = ""
    try:
        decode_yaml(content, KIND)
    except ValueError as error:
        told = str(error)
    assert len(told.splitlines()) <= 1
