import json
import re
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.data.escape import AS_TEXT, CONTROL_CHARACTER, IN_HEADER, IN_JSON, IN_URL, Escape

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["", "\n", "\\n", "%0A", " ", "\\"]
)


@pytest.mark.parametrize("escape", [IN_URL, IN_JSON, IN_HEADER, AS_TEXT])
@given(texts=st.lists(TEXTS, max_size=20))
def test_values_are_written_together_as_they_are_one_by_one(escape: Escape, texts: list[str]) -> None:
    """Neither the values beside it nor their number changes how a value is written."""
    values = [text.encode() for text in texts]
    assert [*escape.write_all(values)] == [escape.escape(value) for value in values]


@given(text=TEXTS)
def test_a_value_is_written_as_its_place_wants_it(text: str) -> None:
    """It reads back as it was, and has nothing but unreserved characters (RFC 3986, section 2.3)."""
    [written] = IN_URL.write_all([text.encode()])
    assert written.decode() == quote(text, safe="")
    assert unquote_to_bytes(written).decode() == text
    assert re.fullmatch(rb"([A-Za-z0-9._~-]|%[0-9A-F]{2})*", written)
    # A part of a string in json reads back as it was.
    [written] = IN_JSON.write_all([text.encode()])
    assert json.loads(b'"%b"' % written) == text
    # No control character goes into a header. Each one is a space instead; all else stays.
    [written] = IN_HEADER.write_all([text.encode()])
    assert not CONTROL_CHARACTER.search(written)
    assert len(written) == len(text.encode())
