"""Responses, and what RFC 9112 has a client make of each of them; every engine is held against this table.

A section is one of RFC 9112 unless it begins with `9110:`. Where the RFC leaves a choice, the verdict is the
one of docs/decisions/0019-one-reader-of-responses.md.
"""

from dataclasses import dataclass

_OK = b"HTTP/1.1 200 OK\r\n"
_LENGTH = b"Content-Length: 2\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_HI = _LENGTH + b"\r\nhi"
_CHUNK = b"2\r\nhi\r\n"
_LAST = b"0\r\n\r\n"


@dataclass(frozen=True)
class Valid:
    """A response that is accepted.

    Attributes:
        section: what says so.
        content: the bytes.
        status: that of the response.
        size: bytes of its body.
        is_kept: whether the connection may be used again.
        ends_by_close: whether the body goes on until the connection is closed.
        surplus: bytes behind it that belong to no response.
        method: of the request.
    """

    section: str
    content: bytes
    status: int = 200
    size: int = 2
    is_kept: bool = True
    ends_by_close: bool = False
    surplus: bytes = b""
    method: str = "GET"


@dataclass(frozen=True)
class Invalid:
    """A response that is refused, and why a section says so."""

    section: str
    content: bytes
    method: str = "GET"


VALID: dict[str, Valid] = {
    # Lines
    "LF alone ends lines": Valid("2.2", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi"),
    "LF alone ends some lines": Valid("2.2", b"HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nhi"),
    "LF alone ends the head": Valid("2.2", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nhi"),
    "LF alone, chunks": Valid("2.2", b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n" + _CHUNK + _LAST),
    "LF alone, interim": Valid("2.2", b"HTTP/1.1 100 Go\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\nhi"),
    "LF alone, a body with blank lines": Valid(
        "2.2", b"HTTP/1.1 200 OK\nContent-Length: 8\n\n\0\r\n\r\n\r\nX", size=8
    ),
    "blank lines before it": Valid("2.2", b"\r\n\r\n" + _OK + _HI),
    "a body of blank lines and NUL": Valid("6.2", _OK + b"Content-Length: 6\r\n\r\n\r\n\r\n\0\0", size=6),
    # Status line
    "a minor version to come": Valid("2.3", b"HTTP/1.2 200 OK\r\n" + _HI),
    "no reason phrase": Valid("4", b"HTTP/1.1 200 \r\n" + _HI),
    "no reason phrase and no space": Valid("4", b"HTTP/1.1 200\r\n" + _HI),
    "a reason phrase of any bytes": Valid("4", b"HTTP/1.1 200 \xff\t\xc3\xa4 \r\n" + _HI),
    "a long reason phrase": Valid("4", b"HTTP/1.1 200 " + b"x" * 20_000 + b"\r\n" + _HI),
    "status 099": Valid("9110:15", b"HTTP/1.1 099 Odd\r\n" + _HI, status=99),
    "status 000": Valid("9110:15", b"HTTP/1.1 000 Odd\r\n" + _HI, status=0),
    "status 600": Valid("9110:15", b"HTTP/1.1 600 Odd\r\n" + _HI, status=600),
    "status 999": Valid("9110:15", b"HTTP/1.1 999 Odd\r\n" + _HI, status=999),
    # Headers
    "a header of 40 kB": Valid("5", _OK + b"X: " + b"y" * 40_000 + b"\r\n" + _HI),
    "200 headers": Valid("5", _OK + b"X: y\r\n" * 199 + _HI),
    "1000 headers": Valid("5", _OK + b"X: y\r\n" * 999 + _HI),
    "an empty value": Valid("5", _OK + b"X:\r\n" + _HI),
    "blanks around a value": Valid("5", _OK + b"Content-Length: \t 2 \t \r\n\r\nhi"),
    "names in any case": Valid("5", _OK + b"cONTENT-lENGTH: 2\r\n\r\nhi"),
    "bytes beyond ASCII in a value": Valid("9110:5.5", _OK + b"X: \xff\xc3\xa4\r\n" + _HI),
    "control characters in a value": Valid("9110:5.5", _OK + b"X: a\x01\x7f\r\n" + _HI),
    "a blank before the colon": Valid("5.1", _OK + b"Content-Length : 2\r\n\r\nhi"),
    "a blank before the colon of any name": Valid("5.1", _OK + b"X-Any : a\r\n" + _HI),
    "a tab before the colon": Valid("5.1", _OK + b"X\t: a\r\n" + _HI),
    "blanks before many colons": Valid(
        "5.1", b"HTTP/1.1 200 OK\nX \t : a\n b : c\nY : d\nContent-Length \t: 5\n\nX : z", size=5
    ),
    "a tab before the colon of an encoding": Valid(
        "5.1", _OK + b"Transfer-Encoding\t: chunked\r\n\r\n" + _CHUNK + _LAST
    ),
    "a tab before the colon of Connection": Valid(
        "5.1", _OK + b"Connection\t: close\r\n" + _HI, is_kept=False
    ),
    "a blank before the colon of interim responses": Valid(
        "5.1", b"HTTP/1.1 103 H\r\nX : a\r\n\r\n" * 200 + _OK + b"Y : a\r\n" + _HI
    ),
    "a folded value": Valid("5.2", _OK + b"X: a\r\n b\r\n\tc\r\n" + _HI),
    "a folded length": Valid("5.2", _OK + b"Content-Length:\r\n 2\r\n\r\nhi"),
    "a folded encoding": Valid("5.2", _OK + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + _CHUNK + _LAST),
    # Length
    "a length": Valid("6.2", _OK + _HI),
    "a length with zeros": Valid("6.2", _OK + b"Content-Length: 0002\r\n\r\nhi"),
    "an empty body": Valid("6.2", _OK + b"Content-Length: 0\r\n\r\n", size=0),
    "204": Valid("6.3", b"HTTP/1.1 204 No Content\r\n\r\n", 204, 0),
    "204 with a length": Valid("6.3", b"HTTP/1.1 204 No Content\r\n" + _LENGTH + b"\r\n", 204, 0),
    "204 with a body": Valid(
        "6.3", b"HTTP/1.1 204 No Content\r\n" + _LENGTH + b"\r\n", 204, 0, surplus=b"hi"
    ),
    "204 with chunks": Valid(
        "6.3", b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", 204, 0, surplus=_CHUNK + _LAST
    ),
    "304 with a length": Valid("6.3", b"HTTP/1.1 304 Not Modified\r\n" + _LENGTH + b"\r\n", 304, 0),
    "304 with a body": Valid(
        "6.3", b"HTTP/1.1 304 Not Modified\r\n" + _LENGTH + b"\r\n", 304, 0, surplus=b"hi"
    ),
    "204 that closes": Valid("9.6", b"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n", 204, 0, is_kept=False),
    "205 with a body": Valid("6.3", b"HTTP/1.1 205 Reset\r\n" + _HI, 205),
    "a body byte too many": Valid("6.3", _OK + _HI, surplus=b"!"),
    "a second response": Valid("9.2", _OK + _HI, surplus=_OK + _HI),
    "a chunk too many": Valid("7.1", _CHUNKED + _CHUNK + _LAST, surplus=_CHUNK),
    "HEAD with a length": Valid("6.3", _OK + _LENGTH + b"\r\n", size=0, method="HEAD"),
    "HEAD without a length": Valid("6.3", _OK + b"\r\n", size=0, method="HEAD"),
    "HEAD with chunks": Valid("6.3", _CHUNKED, size=0, method="HEAD"),
    "HEAD with a body": Valid("6.3", _OK + _LENGTH + b"\r\n", size=0, surplus=b"hi", method="HEAD"),
    "HEAD that closes": Valid(
        "9.6", _OK + b"Connection: close\r\n\r\n", size=0, is_kept=False, method="HEAD"
    ),
    "HEAD after an interim response": Valid(
        "6.3", b"HTTP/1.1 103 Hints\r\n\r\n" + _OK + _LENGTH + b"\r\n", size=0, method="HEAD"
    ),
    "until the connection closes": Valid("6.3", _OK + b"\r\nhi", is_kept=False, ends_by_close=True),
    "gzip alone": Valid("6.3", _OK + b"Transfer-Encoding: gzip\r\n\r\nhi", is_kept=False, ends_by_close=True),
    "an unknown encoding": Valid(
        "6.3", _OK + b"Transfer-Encoding: xchunked\r\n\r\nhi", is_kept=False, ends_by_close=True
    ),
    "chunked is not the last encoding": Valid(
        "6.3", _OK + b"Transfer-Encoding: chunked, gzip\r\n\r\nhi", is_kept=False, ends_by_close=True
    ),
    "chunked is not in the last line": Valid(
        "6.3",
        _OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\nhi",
        is_kept=False,
        ends_by_close=True,
    ),
    # HTTP/1.0
    "HTTP/1.0 with a length": Valid("9.3", b"HTTP/1.0 200 OK\r\n" + _HI, is_kept=False),
    "HTTP/1.0 without a length": Valid(
        "6.3", b"HTTP/1.0 200 OK\r\n\r\nhi", is_kept=False, ends_by_close=True
    ),
    "HTTP/1.0 that keeps": Valid("9.3", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + _HI),
    "HTTP/1.0 that keeps, without a length": Valid(
        "6.3", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhi", is_kept=False, ends_by_close=True
    ),
    "HTTP/1.0 with chunks": Valid(
        "6.1",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNK + _LAST,
        is_kept=False,
    ),
    # Chunks
    "chunks": Valid("7.1", _CHUNKED + b"1\r\nh\r\n1\r\ni\r\n" + _LAST),
    "chunks of capital digits": Valid("7.1", _CHUNKED + b"A\r\n0123456789\r\n" + _LAST, size=10),
    "no chunk": Valid("7.1", _CHUNKED + _LAST, size=0),
    "zeros before a size": Valid("7.1", _CHUNKED + b"0" * 50 + _CHUNK + b"000\r\n\r\n"),
    "the name of chunked in any case": Valid(
        "7", _OK + b"transfer-encoding: CHUNKED\r\n\r\n" + _CHUNK + _LAST
    ),
    "gzip and chunked": Valid("7", _OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + _CHUNK + _LAST),
    "gzip and chunked in two lines": Valid(
        "7", _OK + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNK + _LAST
    ),
    "blanks after a size": Valid("7.1.1", _CHUNKED + b"2  \t\r\nhi\r\n0 \r\n\r\n"),
    "a chunk extension": Valid("7.1.1", _CHUNKED + b"2;a\r\nhi\r\n0;b=c;d\r\n\r\n"),
    "a blank before a chunk extension": Valid("7.1.1", _CHUNKED + b"2 ;a=b\r\nhi\r\n" + _LAST),
    "a quoted chunk extension": Valid("7.1.1", _CHUNKED + b'2;a="b;\\"c "\r\nhi\r\n' + _LAST),
    "a long chunk extension": Valid("7.1.1", _CHUNKED + b"2;" + b"a" * 20_000 + b"\r\nhi\r\n" + _LAST),
    "trailers": Valid("7.1.2", _CHUNKED + _CHUNK + b"0\r\nX: y\r\nExpires: never\r\n\r\n"),
    "a folded trailer": Valid("7.1.2", _CHUNKED + _CHUNK + b"0\r\nX: y\r\n z\r\n\r\n"),
    "200 trailers": Valid("7.1.2", _CHUNKED + _CHUNK + b"0\r\n" + b"X: y\r\n" * 200 + b"\r\n"),
    "a trailer that would close": Valid("7.1.2", _CHUNKED + _CHUNK + b"0\r\nConnection: close\r\n\r\n"),
    # Connections
    "close": Valid("9.6", _OK + b"Connection: close\r\n" + _HI, is_kept=False),
    "close in a list": Valid("9.6", _OK + b"Connection: x, CLOSE\r\n" + _HI, is_kept=False),
    "chunks that close": Valid(
        "9.6",
        _OK + b"Connection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + _CHUNK + _LAST,
        is_kept=False,
    ),
    # Interim responses
    "100": Valid("9110:15.2", b"HTTP/1.1 100 Continue\r\n\r\n" + _OK + _HI),
    "103": Valid("9110:15.2", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + _OK + _HI),
    "100, 102, 103 and 199": Valid(
        "9110:15.2", b"".join(b"HTTP/1.1 %d Wait\r\n\r\n" % n for n in (100, 102, 103, 199)) + _OK + _HI
    ),
    "blank lines between interim responses": Valid(
        "2.2", b"\nHTTP/1.1 100 Go\r\n\r\n\r\n\r\nHTTP/1.1 103 H\n\n\n\n\r\n" + _OK + _HI
    ),
    "100 with a length": Valid("6.3", b"HTTP/1.1 100 Go\r\nContent-Length: 9\r\n\r\n" + _OK + _HI),
    "100 with chunks": Valid("6.3", b"HTTP/1.1 100 Go\r\nTransfer-Encoding: chunked\r\n\r\n" + _OK + _HI),
    "100 that closes": Valid("9110:15.2", b"HTTP/1.1 100 Go\r\nConnection: close\r\n\r\n" + _OK + _HI),
    "100 of HTTP/1.0": Valid("9110:15.2", b"HTTP/1.0 100 Go\r\n\r\n" + _OK + _HI),
    "100 before one until the close": Valid(
        "6.3", b"HTTP/1.1 100 Go\r\n\r\n" + _OK + b"\r\nhi", is_kept=False, ends_by_close=True
    ),
    "101": Valid(
        "9110:15.2.2",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        101,
        0,
        is_kept=False,
    ),
    "an offer to upgrade": Valid("9110:7.8", _OK + b"Upgrade: h2c\r\nConnection: upgrade\r\n" + _HI),
}

INVALID: dict[str, Invalid] = {
    # Lines
    "CR alone in a value": Invalid("2.2", _OK + b"X: a\rb\r\n" + _HI),
    "CR alone ends a header": Invalid("2.2", _OK + b"X: a\r" + _HI),
    "CR alone ends the status line": Invalid("2.2", b"HTTP/1.1 200 OK\r" + _HI),
    "CR alone in a name": Invalid("2.2", _OK + b"X\rY: a\r\n" + _HI),
    "CR alone ends the head": Invalid("2.2", _OK + _LENGTH + b"\rhi"),
    "CR CR LF": Invalid("2.2", _OK + b"X: a\r\r\n" + _HI),
    "a blank before the first header": Invalid("2.2", _OK + b" X: a\r\n" + _HI),
    "a tab before the first header": Invalid("2.2", b"HTTP/1.1 200 OK\n\tContent-Length: 5\n" + _HI),
    # Status line
    "http in small letters": Invalid("2.3", b"http/1.1 200 OK\r\n" + _HI),
    "no HTTP": Invalid("2.3", b"ICY 200 OK\r\n" + _HI),
    "RTSP": Invalid("2.3", b"RTSP/1.0 200 OK\r\n" + _HI),
    "HTTP/0.9": Invalid("2.3", b"HTTP/0.9 200 OK\r\n" + _HI),
    "HTTP/2.0": Invalid("2.3", b"HTTP/2.0 200 OK\r\n" + _HI),
    "HTTP/3.0 after an interim response": Invalid("2.3", b"HTTP/1.1 100 Go\r\n\r\nHTTP/3.0 200 OK\r\n" + _HI),
    "HTTP/1.10": Invalid("2.3", b"HTTP/1.10 200 OK\r\n" + _HI),
    "HTTP/1": Invalid("2.3", b"HTTP/1 200 OK\r\n" + _HI),
    "status 1000": Invalid("4", b"HTTP/1.1 1000 OK\r\n" + _HI),
    "status 20": Invalid("4", b"HTTP/1.1 20 OK\r\n" + _HI),
    "status 2x0": Invalid("4", b"HTTP/1.1 2x0 OK\r\n" + _HI),
    "status -20": Invalid("4", b"HTTP/1.1 -20 OK\r\n" + _HI),
    "no status": Invalid("4", b"HTTP/1.1 OK\r\n" + _HI),
    "two blanks before the status": Invalid("4", b"HTTP/1.1  200 OK\r\n" + _HI),
    "a blank before the version": Invalid("4", b" HTTP/1.1 200 OK\r\n" + _HI),
    "NUL in the reason phrase": Invalid("4", b"HTTP/1.1 200 O\0K\r\n" + _HI),
    # Headers
    "NUL in a value": Invalid("9110:5.5", _OK + b"X: a\0b\r\n" + _HI),
    "NUL in a name": Invalid("5", _OK + b"X\0: a\r\n" + _HI),
    "NUL in an interim response": Invalid("9110:5.5", b"HTTP/1.1 103 H\r\nX: \0\r\n\r\n" + _OK + _HI),
    "no name": Invalid("5", _OK + b": a\r\n" + _HI),
    "no colon": Invalid("5", _OK + b"X\r\n" + _HI),
    "a name that is not a token": Invalid("5", _OK + b"X(y): a\r\n" + _HI),
    "a blank in a name": Invalid("5", _OK + b"X y: a\r\n" + _HI),
    "a blank in a name and one before the colon": Invalid("5", _OK + b"X y : a\r\n" + _HI),
    "a blank before no colon": Invalid("5", _OK + b"X \r\n: a\r\n" + _HI),
    "a blank before the colon of another protocol": Invalid("2.3", b"220 mail\r\nX : a\r\n\r\n" + _HI),
    "two lengths, one with a blank before its colon": Invalid(
        "6.3", _OK + b"X : a\r\nContent-Length : 3\r\n" + _HI
    ),
    "length and encoding, one with a tab before its colon": Invalid(
        "6.3", _OK + b"Transfer-Encoding\t: chunked\r\n" + _HI
    ),
    "a blank before the colon of a name that has none": Invalid("5", _OK + b"A : a\r\n\0 : a\r\n" + _HI),
    "100 kB of blanks before the colon": Invalid("5", _OK + b"X" + b" " * 100_000 + b": a\r\n" + _HI),
    "a header of 100 kB": Invalid("5", _OK + b"X: " + b"y" * 100_000 + b"\r\n" + _HI),
    "1001 headers": Invalid("5", _OK + b"X: y\r\n" * 1000 + _HI),
    "blank lines of 100 kB": Invalid("2.2", b"\r\n" * 50_000 + _OK + _HI),
    "interim responses of 100 kB": Invalid("9110:15.2", b"HTTP/1.1 103 H\r\n\r\n" * 6000 + _OK + _HI),
    # Length
    "two lengths": Invalid("6.3", _OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi"),
    "one length twice": Invalid("6.3", _OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi"),
    "a list of lengths": Invalid("6.3", _OK + b"Content-Length: 2, 2\r\n\r\nhi"),
    "a folded list of lengths": Invalid("6.3", _OK + b"Content-Length: 2\r\n 2\r\n\r\nhi"),
    "an empty length": Invalid("6.2", _OK + b"Content-Length:\r\n\r\nhi"),
    "a length with a sign": Invalid("6.2", _OK + b"Content-Length: +2\r\n\r\nhi"),
    "a negative length": Invalid("6.2", _OK + b"Content-Length: -2\r\n\r\nhi"),
    "a hexadecimal length": Invalid("6.2", _OK + b"Content-Length: 0x2\r\n\r\nhi"),
    "a length beyond 64 bits": Invalid("6.2", _OK + b"Content-Length: 18446744073709551616\r\n\r\nhi"),
    "a length and chunks": Invalid(
        "6.3", _OK + _LENGTH + b"Transfer-Encoding: chunked\r\n\r\n" + _CHUNK + _LAST
    ),
    "chunks and a length": Invalid(
        "6.3", _OK + b"Transfer-Encoding: chunked\r\n" + _LENGTH + b"\r\n" + _CHUNK + _LAST
    ),
    "a length and gzip": Invalid("6.3", _OK + _LENGTH + b"Transfer-Encoding: gzip\r\n\r\nhi"),
    # Chunks
    "chunked twice": Invalid("7.1", _OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + _CHUNK + _LAST),
    "chunked in two lines": Invalid(
        "7.1", _OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNK + _LAST
    ),
    "chunked with a parameter": Invalid(
        "7.1", _OK + b"Transfer-Encoding: chunked;a=b\r\n\r\n" + _CHUNK + _LAST
    ),
    "an empty encoding": Invalid("6.1", _OK + b"Transfer-Encoding:\r\n\r\nhi"),
    "no size": Invalid("7.1", _CHUNKED + b"\r\nhi\r\n" + _LAST),
    "a size that is not a number": Invalid("7.1", _CHUNKED + b"zz\r\nhi\r\n" + _LAST),
    "a negative size": Invalid("7.1", _CHUNKED + b"-2\r\nhi\r\n" + _LAST),
    "a size with 0x": Invalid("7.1", _CHUNKED + b"0x2\r\nhi\r\n" + _LAST),
    "a size beyond 64 bits": Invalid("7.1", _CHUNKED + b"10000000000000000\r\nhi\r\n" + _LAST),
    "a blank before a size": Invalid("7.1", _CHUNKED + b" 2\r\nhi\r\n" + _LAST),
    "two sizes": Invalid("7.1", _CHUNKED + b"2 2\r\nhi\r\n" + _LAST),
    "LF alone after a size": Invalid("7.1", _CHUNKED + b"2\nhi\r\n" + _LAST),
    "LF alone after a chunk": Invalid("7.1", _CHUNKED + b"2\r\nhi\n" + _LAST),
    "LF alone after a chunk extension": Invalid("7.1", _CHUNKED + b"2;a\nhi\r\n" + _LAST),
    "LF alone after the last chunk": Invalid("7.1", _CHUNKED + _CHUNK + b"0\n\n"),
    "CR alone after a size": Invalid("7.1", _CHUNKED + b"2\rhi\r\n" + _LAST),
    "nothing after a chunk": Invalid("7.1", _CHUNKED + b"2\r\nhi" + _LAST),
    "a chunk longer than its size": Invalid("7.1", _CHUNKED + b"2\r\nhi!\r\n" + _LAST),
    "an empty chunk extension": Invalid("7.1.1", _CHUNKED + b"2;\r\nhi\r\n" + _LAST),
    "NUL in a chunk extension": Invalid("7.1.1", _CHUNKED + b"2;a\0\r\nhi\r\n" + _LAST),
    "a trailer without a colon": Invalid("7.1.2", _CHUNKED + _CHUNK + b"0\r\nX\r\n\r\n"),
    "a length in the trailers": Invalid("9110:6.5.1", _CHUNKED + _CHUNK + b"0\r\nContent-Length: 2\r\n\r\n"),
}
