"""The messages between a worker and its host."""

import struct

import pytest

from oku_core.user_code.messages import FrameReader, FromHost, Report, Returned, Start, ToHost, frame


def read(content: bytes, kind: object) -> list[object]:
    """All messages in some bytes."""
    return list(FrameReader(kind).feed(content))


def test_a_message_is_read_as_it_was_written() -> None:
    """Whatever is in it, and although it comes in pieces."""
    report = Report(wanted=3, texts=["get", "größe"], tracebacks={1: "line 7"}, ended=[0, 1, 2, 3, -1])
    content, reader = frame(report), FrameReader(FromHost)

    assert [message for at in range(len(content)) for message in reader.feed(content[at : at + 1])] == [
        report
    ]


def test_text_that_utf_8_cannot_encode_is_escaped() -> None:
    """An exception may name a file whose name is not UTF-8; the report of it ends neither host nor run."""
    report = Report(texts=["no \udcff.txt"], tracebacks={0: "in \ud800"}, requests=[0, -1], wanted=2)
    returned = Returned(error="no \udcff.txt", traceback="größe \udcff")
    assert read(frame(report), FromHost) == [
        Report(texts=["no \\udcff.txt"], tracebacks={0: "in \\ud800"}, requests=[0, -1], wanted=2)
    ]
    assert read(frame(returned), FromHost) == [Returned(error="no \\udcff.txt", traceback="größe \\udcff")]
    # Bytes stay what they are beside such a text.
    start = Start(
        spec=b'{"a": "\xff"}', folder=b"/tmp/\xff", users=1, is_ahead=True, paths={"\udcff": b"\xff"}
    )
    (read_back,) = read(frame(start), ToHost)
    assert isinstance(read_back, Start)
    assert (read_back.spec, read_back.folder) == (start.spec, start.folder)
    assert read_back.paths == {"\\udcff": b"\xff"}


@pytest.mark.parametrize("content", [b"\x91" * 100_000, b"\xc1", b"\x90", b""])
def test_what_is_no_message_is_one_error(content: bytes) -> None:
    """User code can write to the socket of its host, and its worker goes on."""
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        read(struct.pack(">I", len(content)) + content, FromHost)
