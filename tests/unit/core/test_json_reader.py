import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.json_reader import decode_json

WRONG = {
    b"": "is not JSON: Expecting value",
    b"{": "is not JSON: ",
    b"\xff": "is not UTF-8",
    b'{"a": 1, "b": 2, "a": 3}': "a: is given twice",
    b'[{"x": {"\\u001b": 1, "\\u001b": 2}}]': r"'\x1b': is given twice",
    b"NaN": "is not JSON: NaN is not a number",
    b"-Infinity": "is not JSON: -Infinity is not a number",
    b"9" * 5000: "a number has 5000 digits; at most 400 are allowed",
    b"[" * 1_000_000: "is nested too deep",
    b'{"a":' * 200_000: "is nested too deep",
}


@pytest.mark.parametrize(("content", "message"), WRONG.items(), ids=range(len(WRONG)))
def test_json_that_parsers_disagree_about_is_refused(content: bytes, message: str) -> None:
    """It is refused in one line and without delay."""
    began = time.process_time()
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        decode_json(content)

    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 1
    assert time.process_time() - began < 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    )
)
def test_json_that_a_program_writes_is_read(value: object) -> None:
    """The values come back unchanged."""
    assert decode_json(json.dumps(value).encode()) == value
