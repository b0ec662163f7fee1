import pytest

from oku_core.data.escape import AS_TEXT
from oku_core.data.row_reader import Value
from oku_core.spec.values.body_bytes import FileText, measure_body, read_body, write_body
from oku_core.spec.values.template import Template

CONTENTS = [b"", b"{i}", b"%d {i} %", bytes(range(256)), "{a} and 😀 {i}".encode(), b"\xff{i}\xfe{b}\xfd"]


@pytest.mark.parametrize("content", CONTENTS)
def test_any_file_is_sent_as_it_is(content: bytes) -> None:
    """Its text has one character for each byte, whatever its encoding."""
    text = read_body(content)
    assert len(text) == len(content) == measure_body(text)
    assert write_body(text) == content


@pytest.mark.parametrize("content", CONTENTS)
def test_what_stands_in_for_placeholders_is_put_into_the_bytes_of_a_file(content: bytes) -> None:
    """The rest of them stays, also where braces have something else in them."""
    template = Template.parse(read_body(content), ("b",))

    class Rows:
        values = (Value("b", AS_TEXT),)

        def read(self, _: int) -> tuple[bytes, ...]:
            return ("ü".encode(),)

    expected = content.replace(b"{i}", b"7").replace(b"{b}", "ü".encode())
    assert template.bind_bytes(Rows())(7) == expected
    fixed = content.replace(b"{i}", b"").replace(b"{b}", b"")
    assert template.fixed_bytes == len(fixed)


def test_a_text_is_written_in_utf_8() -> None:
    """Lone surrogates are bytes that are not UTF-8."""
    assert write_body("ü\udcff") == "ü".encode() + b"\xff"
    assert measure_body("ü\udcff") == 3
    assert not isinstance("ü", FileText)
