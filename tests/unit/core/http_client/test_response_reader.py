"""What the reader of all engines makes of the table of responses, cut at every place."""

from collections.abc import Iterator

import pytest
from tests.kit.servers.responses import INVALID, VALID, Invalid, Valid

from oku_core.http_client.response_reader import LONGEST_FRAMING_BYTES, MalformedResponseError, ResponseReader

LONG = 500


def cut(content: bytes) -> Iterator[list[bytes]]:
    """In one piece, in two at every place of the first and the last bytes, and byte by byte."""
    yield [content]
    for place in range(1, len(content)):
        if len(content) < LONG or place < 100 or place > len(content) - 100:
            yield [content[:place], content[place:]]
    step = 1 if len(content) < LONG else 101
    yield [content[at : at + step] for at in range(0, len(content), step)]


def read(row: Valid | Invalid, pieces: list[bytes]) -> ResponseReader:
    """What has been read after all pieces."""
    reader = ResponseReader(has_bodies=row.method != "HEAD")
    for piece in pieces:
        reader.feed(piece)
    return reader


@pytest.mark.parametrize("name", VALID)
def test_what_is_valid_is_accepted(name: str) -> None:
    """Its status and its length are read, and the connection is used again where that is allowed."""
    row = VALID[name]
    for pieces in cut(row.content):
        reader = read(row, pieces)
        assert (reader.status, reader.received) == (row.status, row.size)
        assert reader.is_complete is not row.ends_by_close
        assert reader.ends_by_close is row.ends_by_close
        assert reader.is_kept is row.is_kept


@pytest.mark.parametrize("name", INVALID)
def test_what_is_invalid_is_refused(name: str) -> None:
    """It does not matter in which pieces it arrives."""
    row = INVALID[name]
    for pieces in cut(row.content):
        with pytest.raises(MalformedResponseError):
            read(row, pieces)


@pytest.mark.parametrize("name", [name for name, row in VALID.items() if row.surplus])
def test_what_is_too_much_ends_the_connection(name: str) -> None:
    """It arrives with the end of a response; what comes later reaches an idle connection."""
    row = VALID[name]
    for place in range(len(row.content)):
        reader = read(row, [row.content[:place], row.content[place:] + row.surplus])
        assert (reader.status, reader.received, reader.is_complete) == (row.status, row.size, True)
        assert not reader.is_kept


@pytest.mark.parametrize("name", [name for name, row in VALID.items() if not row.ends_by_close])
def test_what_ends_early_is_not_complete(name: str) -> None:
    """The end of the connection does not make it so, whatever is missing."""
    row = VALID[name]
    for place in range(min(len(row.content), 100)):
        reader = read(row, [row.content[:place]])
        assert not reader.is_complete
        assert not reader.ends_by_close


def test_a_response_begins_behind_interim_ones() -> None:
    """A connection that ends before that has no response; one that ends later has cut it short."""
    reader = ResponseReader(has_bodies=True)
    begun = []
    for piece in (b"", b"HTTP/1.1 103 Hints\r\n\r\n", b"H", b"TTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"):
        reader.feed(piece)
        begun.append(reader.has_begun)
    reader.reset()
    assert [*begun, reader.has_begun] == [False, False, True, True, False]


@pytest.mark.parametrize("name", [name for name, row in VALID.items() if row.is_kept])
def test_one_reader_reads_one_response_after_the_other(name: str) -> None:
    """The first one changes nothing in the next."""
    row = VALID[name]
    reader = ResponseReader(has_bodies=row.method != "HEAD")
    for other in [row, *(other for other in VALID.values() if other.method == row.method), row]:
        reader.feed(other.content)
        assert (reader.status, reader.received) == (other.status, other.size)
        if not other.is_kept:
            reader = ResponseReader(has_bodies=other.method != "HEAD")
        reader.reset()


@pytest.mark.parametrize(
    "endless",
    [b"0\r\n" + b"X: y\r\n" * 50_000, b"0\r\nX: " + b"y" * 300_000, b"2;" + b"a" * 300_000],
    ids=["trailers", "one trailer", "chunk extension"],
)
@pytest.mark.parametrize("piece", [100, 65_536])
def test_what_is_between_chunks_has_a_limit(endless: bytes, piece: int) -> None:
    """It is not kept, but nobody has to read it for ever either."""
    content = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n" + endless
    with pytest.raises(MalformedResponseError, match=str(LONGEST_FRAMING_BYTES)):
        read(Invalid("7.1", content), [content[at : at + piece] for at in range(0, len(content), piece)])


def test_many_small_chunks_are_not_a_fault() -> None:
    """Their sizes are longer than what is in them."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    content = head + b"1;a=b\r\nx\r\n" * 50_000 + b"0\r\n\r\n"
    reader = read(Valid("7.1", content), [content[at : at + 10] for at in range(0, len(content), 10)])
    assert (reader.received, reader.is_complete, reader.is_kept) == (50_000, True, True)
