"""The table of odd targets: what each does with a request, and what becomes of it with every client.

`DIFFERENT` has the clients that make something else of a target, and why they may.
"""

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import replace

from tests.kit.clients.odd_target import FOLLOWERS, OK, ClientKind, ClientResult, OddTarget
from tests.kit.clients.target_server import Ending, Reply, TargetPort
from tests.kit.http2.server import Script, StreamExchange

HI = b"Content-Length: 2\r\n\r\nhi"
_STATUS = b"HTTP/1.1 200 OK\r\n"
CHUNKED = _STATUS + b"Transfer-Encoding: chunked\r\n\r\n"
_ONE = ("GET /",)
_ALL = frozenset(ClientKind)
_ENGINES = frozenset({ClientKind.AIOHTTP, ClientKind.HTTPTOOLS, ClientKind.NGHTTP2})
_HTTPS = "https://127.0.0.1:{port}/{name}/"
HUNG_UP = ClientResult("disconnected", "the server hung up", 0, _ONE)
CUT_SHORT = ClientResult("disconnected", "the response was cut short", 0, _ONE)
RESET = ClientResult("disconnected", "reset", 0, _ONE)
TIMEOUT = ClientResult("timeout", "no answer within {timeout}", 0, _ONE)


def replies(*parts: bytes, end: Ending = Ending.KEEP, reads_body: bool = True) -> Mapping[str, Reply]:
    """The only reply of a target."""
    return {"": Reply(parts, end, reads_body)}


def head(*lines: bytes, status: bytes = b"200 OK", body: bytes = b"hi") -> bytes:
    """An answer with a length."""
    return b"\r\n".join([b"HTTP/1.1 " + status, *lines, b"Content-Length: %d" % len(body), b"", body])


def malformed(why: str) -> ClientResult:
    """An answer that is no HTTP."""
    return ClientResult("protocol_error", f"not HTTP: {why}", 0, _ONE)


def status(code: int, method: str = "GET") -> ClientResult:
    """An answer with an unexpected status."""
    return ClientResult("unexpected_status", f"status {code}", code, (f"{method} /",))


_CHUNK_SIZE = "Invalid character in chunk size"
_HEADER = "Invalid header token"
_LENGTH = "Invalid character in Content-Length"
_NO_HTTP = "Expected HTTP/, RTSP/ or ICE/"
_TWO_LENGTHS = "Duplicate Content-Length"
BODIES: dict[str, OddTarget] = {
    "length": OddTarget(replies(head())),
    "chunks": OddTarget(replies(CHUNKED + b"2\r\nhi\r\n0\r\n\r\n")),
    "chunks-apart": OddTarget(replies(CHUNKED, b"2\r\nhi\r\n", b"1\r\n!\r\n", b"0\r\n\r\n")),
    "chunk-extension": OddTarget(replies(CHUNKED + b"2;a=b\r\nhi\r\n0\r\n\r\n")),
    "chunk-size-with-zeros": OddTarget(replies(CHUNKED + b"0002\r\nhi\r\n0\r\n\r\n")),
    "trailers": OddTarget(replies(CHUNKED + b"2\r\nhi\r\n0\r\nDigest: x\r\n\r\n")),
    "chunk-size-no-number": OddTarget(
        replies(CHUNKED + b"zz\r\nhi\r\n0\r\n\r\n", end=Ending.CLOSE), malformed(_CHUNK_SIZE)
    ),
    "chunk-size-negative": OddTarget(
        replies(CHUNKED + b"-2\r\nhi\r\n0\r\n\r\n", end=Ending.CLOSE), malformed(_CHUNK_SIZE)
    ),
    "chunk-size-missing": OddTarget(
        replies(CHUNKED + b"\r\nhi\r\n0\r\n\r\n", end=Ending.CLOSE), malformed(_CHUNK_SIZE)
    ),
    "chunk-size-no-number-apart": OddTarget(
        replies(CHUNKED, b"2\r\nhi\r\n", b"zz\r\n", end=Ending.CLOSE), malformed(_CHUNK_SIZE)
    ),
    "chunk-longer-than-size": OddTarget(
        replies(CHUNKED + b"2\r\nhi!\r\n0\r\n\r\n", end=Ending.CLOSE),
        malformed("Expected LF after chunk data"),
    ),
    "last-chunk-missing-stall": OddTarget(replies(CHUNKED + b"2\r\nhi\r\n", end=Ending.STALL), TIMEOUT),
    "last-chunk-missing-close": OddTarget(replies(CHUNKED + b"2\r\nhi\r\n", end=Ending.CLOSE), CUT_SHORT),
    "last-line-missing-close": OddTarget(replies(CHUNKED + b"2\r\nhi\r\n0\r\n", end=Ending.CLOSE), CUT_SHORT),
    "close-within-a-chunk": OddTarget(replies(CHUNKED + b"9\r\nhi", end=Ending.CLOSE), CUT_SHORT),
    "reset-within-a-chunk": OddTarget(replies(CHUNKED + b"9\r\nhi", end=Ending.RESET), RESET),
    "body-too-short": OddTarget(
        replies(_STATUS + b"Content-Length: 9\r\n\r\nhi", end=Ending.CLOSE), CUT_SHORT
    ),
    "body-too-short-stall": OddTarget(
        replies(_STATUS + b"Content-Length: 9\r\n\r\nhi", end=Ending.STALL), TIMEOUT
    ),
    "body-too-long": OddTarget(replies(_STATUS + b"Content-Length: 2\r\n\r\nhi!")),
    "two-answers": OddTarget(replies(head() + head())),
    "until-close": OddTarget(replies(_STATUS + b"\r\nhi", end=Ending.CLOSE)),
    "until-reset": OddTarget(replies(_STATUS + b"\r\nhi", end=Ending.RESET), RESET),
    "until-stall": OddTarget(replies(_STATUS + b"\r\nhi", end=Ending.STALL), TIMEOUT),
    "head-with-a-body": OddTarget(replies(head()), OK._replace(asked=("HEAD /",)), method="HEAD"),
    "head-without-a-body": OddTarget(
        replies(_STATUS + b"Content-Length: 9\r\n\r\n"), OK._replace(asked=("HEAD /",)), method="HEAD"
    ),
    "204-with-a-body": OddTarget(replies(head(status=b"204 No Content")), OK._replace(status=204)),
    "304-with-a-body": OddTarget(replies(head(status=b"304 Not Modified")), OK._replace(status=304)),
    "304-with-a-length": OddTarget(
        replies(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"), OK._replace(status=304)
    ),
    "json": OddTarget(replies(head(body=b'{"a": 1}')), reads_json=True),
    "json-with-a-mark": OddTarget(replies(head(body=b'\xef\xbb\xbf{"a": 1}')), reads_json=True),
    "gzip": OddTarget(
        replies(head(b"Content-Encoding: gzip", body=gzip.compress(b'{"a": 1}'))), reads_json=True
    ),
    "gzip-of-nothing": OddTarget(replies(head(b"Content-Encoding: gzip"))),
}
HEADS: dict[str, OddTarget] = {
    "blank-before-colon": OddTarget(replies(head(b"X-Frame-Options : DENY"))),
    "blank-before-colon-of-length": OddTarget(replies(_STATUS + b"Content-Length : 2\r\n\r\nhi")),
    "blanks-before-colon": OddTarget(replies(head(b"X-Frame-Options  : DENY"))),
    "tab-before-colon": OddTarget(replies(head(b"X\t: a"))),
    "tab-before-colon-of-length": OddTarget(replies(_STATUS + b"Content-Length\t: 2\r\n\r\nhi")),
    "blank-before-colon-of-chunks": OddTarget(
        replies(_STATUS + b"Transfer-Encoding : chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
    ),
    "blank-before-colon-of-both-lengths": OddTarget(
        replies(_STATUS + b"X : a\r\nContent-Length : 3\r\n" + HI), malformed(_TWO_LENGTHS)
    ),
    "blank-before-colon-after-an-interim-answer": OddTarget(
        replies(b"HTTP/1.1 103 Early Hints\r\nLink : </x>\r\n\r\n" + head(b"X : a"))
    ),
    "blank-in-name": OddTarget(replies(head(b"X y: a")), malformed(_HEADER)),
    "folded": OddTarget(replies(head(b"X: a", b" b", b"\tc"))),
    "folded-first": OddTarget(replies(head(b" X: a")), malformed("its first header begins with a blank")),
    "no-colon": OddTarget(replies(head(b"nonsense")), malformed(_HEADER)),
    "no-name": OddTarget(replies(head(b": a")), malformed(_HEADER)),
    "no-reason-phrase": OddTarget(replies(head(status=b"200 "))),
    "no-reason-phrase-no-space": OddTarget(replies(head(status=b"200"))),
    "bare-lf": OddTarget(replies(head().replace(b"\r\n", b"\n"))),
    "length-twice-equal": OddTarget(
        replies(_STATUS + b"Content-Length: 2\r\n" + HI), malformed(_TWO_LENGTHS)
    ),
    "length-twice-different": OddTarget(
        replies(_STATUS + b"Content-Length: 3\r\n" + HI), malformed(_TWO_LENGTHS)
    ),
    "length-list": OddTarget(replies(_STATUS + b"Content-Length: 2, 2\r\n\r\nhi"), malformed(_LENGTH)),
    "length-no-number": OddTarget(replies(_STATUS + b"Content-Length: two\r\n\r\nhi"), malformed(_LENGTH)),
    "length-negative": OddTarget(replies(_STATUS + b"Content-Length: -2\r\n\r\nhi"), malformed(_LENGTH)),
    "length-and-chunks": OddTarget(
        replies(head(b"Transfer-Encoding: chunked", body=b"2\r\nhi\r\n0\r\n\r\n")),
        malformed("Content-Length can't be present with Transfer-Encoding"),
    ),
    "continue-first": OddTarget(replies(b"HTTP/1.1 100 Continue\r\n\r\n" + head())),
    "hints-first": OddTarget(replies(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", head())),
    "interim-twice": OddTarget(
        replies(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + head())
    ),
    "101": OddTarget(
        replies(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", end=Ending.CLOSE
        ),
        status(101),
    ),
    "header-of-40-kb": OddTarget(replies(head(b"X: " + b"y" * 40_000))),
    "header-of-100-kb": OddTarget(
        replies(head(b"X: " + b"y" * 100_000)), malformed("its head is longer than 65536 bytes")
    ),
    "200-headers": OddTarget(replies(head(*[b"X: y"] * 199))),
    "latin-1": OddTarget(replies(head(b"X: caf\xe9"))),
    "utf-8": OddTarget(replies(head("X: café".encode()))),
    "nul-in-a-value": OddTarget(replies(head(b"X: a\0b")), malformed("its head contains a NUL")),
    "status-999": OddTarget(replies(head(status=b"999 Odd")), status(999)),
    "status-of-four-digits": OddTarget(
        replies(head(status=b"2000 OK")), malformed("Invalid response status")
    ),
    "no-status": OddTarget(replies(head(status=b"OK")), malformed("Invalid status code")),
    "another-protocol": OddTarget(
        replies(b"220 mail.example ESMTP\r\n", end=Ending.CLOSE), malformed(_NO_HTTP)
    ),
    "a-tls-alert": OddTarget(replies(b"\x15\x03\x01\x00\x02\x02\x46", end=Ending.CLOSE), malformed(_NO_HTTP)),
    "http-2.0": OddTarget(replies(head().replace(b"HTTP/1.1", b"HTTP/2.0")), malformed("it is not HTTP/1")),
    "http-1.0": OddTarget(replies(head().replace(b"HTTP/1.1", b"HTTP/1.0"), end=Ending.CLOSE)),
    "http-1.0-kept": OddTarget(replies(head(b"Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0"))),
    "http-1.0-until-close": OddTarget(replies(b"HTTP/1.0 200 OK\r\n\r\nhi", end=Ending.CLOSE)),
    "http-1.0-chunks": OddTarget(
        replies((CHUNKED + b"2\r\nhi\r\n0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"), end=Ending.CLOSE)
    ),
}


def respond(code: int) -> Script:
    """Answer with a status, over HTTP/2."""

    async def script(exchange: StreamExchange) -> None:
        await exchange.respond(code, b"" if code == NO_CONTENT else b"hi", ("location", "/there"))

    return script


NO_CONTENT = 204
STATUSES: dict[str, OddTarget] = {
    **{
        f"status-{code}": OddTarget(
            replies(head(status=b"%d Odd" % code)), status(code), clients=_ALL, http2=respond(code)
        )
        for code in (400, 404, 429, 500, 503)
    },
    "status-204": OddTarget(
        replies(b"HTTP/1.1 204 No Content\r\n\r\n"), OK._replace(status=204), clients=_ALL, http2=respond(204)
    ),
    **{
        f"{code}-not-followed": OddTarget(
            replies(head(b"Location: /there", status=b"%d On" % code)),
            OK._replace(status=code),
            clients=_ENGINES,
            http2=respond(code),
        )
        for code in (301, 302, 303, 307, 308)
    },
}


async def hang_up(exchange: StreamExchange) -> None:
    """Before any answer."""
    exchange.hang_up()


async def hang_up_within(exchange: StreamExchange) -> None:
    """Within the body."""
    exchange.session.send_headers(exchange.stream, [(":status", "200"), ("content-length", "9")], end=False)
    exchange.session.send_data(exchange.stream, b"hi", end=False)
    await asyncio.sleep(0.02)
    exchange.hang_up()


async def answer(exchange: StreamExchange) -> None:
    """ClientResult well."""
    await exchange.respond(body=b"hi")


BIG = "x" * 4_000_000
TOO_LARGE = head(b"Connection: close", status=b"413 Content Too Large")
EARLY = ClientResult("unexpected_status", "status 413", 413, ("POST /",))
ENDS: dict[str, OddTarget] = {
    "close-before-the-status-line": OddTarget(
        replies(end=Ending.CLOSE), HUNG_UP, clients=_ALL, http2=hang_up
    ),
    "reset-before-the-status-line": OddTarget(replies(end=Ending.RESET), RESET),
    "close-within-the-status-line": OddTarget(replies(b"HTTP/1.", end=Ending.CLOSE), CUT_SHORT),
    "close-within-the-head": OddTarget(replies(_STATUS + b"Content-Le", end=Ending.CLOSE), CUT_SHORT),
    "reset-within-the-head": OddTarget(replies(_STATUS + b"Content-Le", end=Ending.RESET), RESET),
    "close-after-an-interim-answer": OddTarget(
        replies(b"HTTP/1.1 103 Hints\r\n\r\n", end=Ending.CLOSE), HUNG_UP
    ),
    "close-within-the-head-after-an-interim-answer": OddTarget(
        replies(b"HTTP/1.1 103 Hints\r\n\r\n", _STATUS, end=Ending.CLOSE), CUT_SHORT
    ),
    "close-within-the-trailers": OddTarget(
        replies(CHUNKED + b"2\r\nhi\r\n0\r\nDigest: x\r\n", end=Ending.CLOSE), CUT_SHORT
    ),
    "close-before-the-body": OddTarget(
        replies(_STATUS + b"Content-Length: 2\r\n\r\n", end=Ending.CLOSE), CUT_SHORT
    ),
    "reset-before-the-body": OddTarget(
        replies(_STATUS + b"Content-Length: 2\r\n\r\n", end=Ending.RESET), RESET
    ),
    "close-within-the-body": OddTarget(
        replies(_STATUS + b"Content-Length: 9\r\n\r\n", b"hi", end=Ending.CLOSE),
        CUT_SHORT,
        clients=_ALL,
        http2=hang_up_within,
    ),
    "reset-within-the-body": OddTarget(
        replies(_STATUS + b"Content-Length: 9\r\n\r\n", b"hi", end=Ending.RESET), RESET
    ),
    "close-after-the-answer": OddTarget(replies(head(), end=Ending.CLOSE)),
    "close-after-the-answer-as-said": OddTarget(replies(head(b"Connection: close"), end=Ending.CLOSE)),
    "reset-after-the-answer": OddTarget(replies(head(), end=Ending.RESET)),
    "stall-before-the-status-line": OddTarget(replies(end=Ending.STALL), TIMEOUT),
    "stall-within-the-head": OddTarget(replies(_STATUS, end=Ending.STALL), TIMEOUT),
    "413-then-close-later": OddTarget(
        replies(TOO_LARGE, *[b""] * 15, end=Ending.CLOSE, reads_body=False), EARLY, method="POST", body=BIG
    ),
    "413-then-reads-and-closes": OddTarget(
        replies(TOO_LARGE, end=Ending.CLOSE),
        EARLY._replace(asked=(f"POST /, {BIG}",)),
        method="POST",
        body=BIG,
    ),
}


def lead(location: bytes, code: int = 302, *lines: bytes) -> Reply:
    """A redirection."""
    return Reply((head(b"Location: " + location, *lines, status=b"%d On" % code, body=b"on"),))


THERE = Reply((head(),))


def led(*asked: str, method: str = "GET") -> ClientResult:
    """Well answered in the end."""
    return OK._replace(asked=(f"{method} /", *asked))


def leads(location: bytes, path: str, *asked: str, code: int = 302) -> OddTarget:
    """A target that sends a request on to a path of its own."""
    return OddTarget({"": lead(location, code), path: THERE}, led(*asked), clients=FOLLOWERS)


def refused(why: str, *asked: str) -> ClientResult:
    """A redirection that is not followed."""
    return ClientResult("protocol_error", why, 0, ("GET /", *asked))


NOT_A_URL = "a redirection to what is not a URL"


def sends_on(code: int, method: str, *asked: str) -> OddTarget:
    """A request with a body that is sent on."""
    return OddTarget(
        {"": lead(b"{here}/there", code), "there": THERE},
        OK._replace(asked=(f"{method} /, x", *asked)),
        method=method,
        body="x",
        clients=FOLLOWERS,
    )


REDIRECTIONS: dict[str, OddTarget] = {
    **{
        f"{code}-of-get": leads(b"{here}/there", "there", "GET /there", code=code)
        for code in (301, 302, 303, 307, 308)
    },
    "301-of-post": sends_on(301, "POST", "GET /there"),
    "302-of-post": sends_on(302, "POST", "GET /there"),
    "303-of-post": sends_on(303, "POST", "GET /there"),
    "307-of-post": sends_on(307, "POST", "POST /there, x"),
    "308-of-post": sends_on(308, "POST", "POST /there, x"),
    "301-of-put": sends_on(301, "PUT", "PUT /there, x"),
    "302-of-put": sends_on(302, "PUT", "PUT /there, x"),
    "303-of-put": sends_on(303, "PUT", "GET /there"),
    "300": OddTarget(
        {"": lead(b"{here}/there", 300), "there": THERE}, OK._replace(status=300), clients=FOLLOWERS
    ),
    "304-with-a-location": OddTarget(
        {"": Reply((b"HTTP/1.1 304 Not Modified\r\nLocation: {here}/there\r\n\r\n",)), "there": THERE},
        OK._replace(status=304),
        clients=FOLLOWERS,
    ),
    "location-in-full": leads(b"{origin}{here}/there", "there", "GET /there"),
    "location-relative": leads(b"there", "there", "GET /there"),
    "location-with-dots": leads(b"../x/..{here}/there", "there", "GET /there"),
    "location-query": leads(b"?a=b", "?a=b", "GET /?a=b"),
    "location-quoted": leads(
        b"{here}/A_%26_B?next=http%3A//e.example/",
        "A_%26_B?next=http%3A//e.example/",
        "GET /A_%26_B?next=http%3A//e.example/",
    ),
    "location-lower-case-quotes": leads(b"{here}/%c3%a9", "%c3%a9", "GET /%c3%a9"),
    "location-plus-and-quoted-letters": leads(
        b"{here}/%41+b%2Fc?d=%20e+f", "%41+b%2Fc?d=%20e+f", "GET /%41+b%2Fc?d=%20e+f"
    ),
    "location-of-utf-8": leads("{here}/é".encode(), "%C3%A9", "GET /%C3%A9"),
    "location-blank": leads(b"{here}/a b", "a%20b", "GET /a%20b"),
    "location-fragment": leads(b"{here}/there#part", "there", "GET /there"),
    "location-without-scheme": leads(b"//{host}{here}/there", "there", "GET /there"),
    "307-of-post-elsewhere": OddTarget(
        {"": lead(b"{other}{here}/there", 307), "there": THERE},
        ClientResult(
            "protocol_error", "a redirection of a request with a body to another origin", 0, ("POST /, x",)
        ),
        method="POST",
        body="x",
        clients=FOLLOWERS,
    ),
    "303-of-head": OddTarget(
        {"": lead(b"{here}/there", 303), "there": THERE},
        OK._replace(asked=("HEAD /", "HEAD /there")),
        method="HEAD",
        clients=FOLLOWERS,
    ),
    "location-elsewhere": OddTarget(
        {"": lead(b"{other}{here}/there"), "there": THERE}, led("other GET /there"), clients=FOLLOWERS
    ),
    "location-empty": OddTarget({"": lead(b""), "there": THERE}, OK._replace(status=302), clients=FOLLOWERS),
    "location-missing": OddTarget(
        {"": Reply((head(status=b"302 On"),)), "there": THERE}, OK._replace(status=302), clients=FOLLOWERS
    ),
    **{
        f"location-{name}": OddTarget({"": lead(place), "there": THERE}, refused(why), clients=FOLLOWERS)
        for name, place, why in (
            ("of-ftp", b"ftp://127.0.0.1/", "a redirection to a URL of ftp"),
            ("of-mail", b"mailto:nobody@localhost", "a redirection to a URL of mailto"),
            ("of-a-script", b"javascript:alert(1)", "a redirection to a URL of javascript"),
            ("with-a-bracket", b"http://[::1", NOT_A_URL),
            ("with-no-port", b"http://127.0.0.1:99999/", NOT_A_URL),
            ("with-a-blank-in-its-host", b"http://a b/", NOT_A_URL),
        )
    },
    "loop": OddTarget(
        {"": lead(b"{here}/there"), "there": lead(b"{here}/there")},
        refused("more than {most} redirections", "GET /there ({most} times)"),
        clients=FOLLOWERS,
    ),
    "refused-elsewhere": OddTarget(
        {"": lead(b"http://127.0.0.1:9/"), "there": THERE},
        ClientResult("connect_error", "refused", 0, ("GET /",)),
        clients=FOLLOWERS,
    ),
}


def sets(*cookies: bytes, origin: bytes = b"") -> Reply:
    """A first answer with cookies, which leads on."""
    return lead(origin + b"{here}/there", 302, *(b"Set-Cookie: " + each for each in cookies))


def keeps(sent: str, *cookies: bytes) -> OddTarget:
    """A target that sets cookies, and what comes back."""
    asked = f"GET /there, Cookie: {sent}" if sent else "GET /there"
    return OddTarget({"": sets(*cookies), "there": THERE}, led(asked), clients=FOLLOWERS)


def changes(sent: str, first: tuple[bytes, ...], second: tuple[bytes, ...], between: str) -> OddTarget:
    """A target that sets cookies twice, and what comes back in the end."""
    last = f"GET /last, Cookie: {sent}" if sent else "GET /last"
    then = lead(b"{here}/last", 302, *(b"Set-Cookie: " + each for each in second))
    return OddTarget(
        {"": sets(*first), "there": then, "last": THERE},
        led(f"GET /there, Cookie: {between}", last),
        clients=FOLLOWERS,
    )


COOKIES: dict[str, OddTarget] = {
    "cookie": keeps("a=b", b"a=b; Path=/"),
    "cookie-padded": keeps("session=abc==", b"session=abc==; Path=/"),
    "cookie-slash-and-plus": keeps("sid=ab/cd+e==", b"sid=ab/cd+e==; Path=/"),
    "cookie-comma": keeps("list=a,b", b"list=a,b; Path=/"),
    "cookie-quoted": keeps('a="b c"', b'a="b c"; Path=/'),
    "cookie-json": keeps('pref={"a":1}', b'pref={"a":1}; Path=/'),
    "cookie-percent": keeps("a=%20b", b"a=%20b; Path=/"),
    "cookie-blank": keeps("a=b c", b"a=b c; Path=/"),
    "cookie-utf-8": keeps("a=caf\xc3\xa9", "a=café; Path=/".encode()),
    "cookie-empty": keeps("a=", b"a=; Path=/"),
    "cookies-two": keeps("a=1; b=2", b"a=1; Path=/", b"b=2; Path=/"),
    "cookie-twice": keeps("a=2", b"a=1; Path=/", b"a=2; Path=/"),
    "cookie-paths": keeps("a=1; a=2", b"a=1; Path=/", b"a=2; Path={here}"),
    "cookie-other-path": keeps("", b"a=1; Path=/elsewhere"),
    "cookie-default-path": keeps("a=1", b"a=1"),
    "cookie-secure": keeps("", b"a=1; Path=/; Secure"),
    "cookie-secure-over-tls": replace(keeps("a=1", b"a=1; Path=/; Secure"), port=TargetPort.TLS, url=_HTTPS),
    "cookie-http-only": keeps("a=1", b"a=1; Path=/; HttpOnly; SameSite=Lax"),
    "cookie-domain": keeps("a=1", b"a=1; Path=/; Domain=127.0.0.1"),
    "cookie-other-domain": keeps("", b"a=1; Path=/; Domain=other.example"),
    "cookie-other-port": OddTarget(
        {"": sets(b"a=1; Path=/", origin=b"{other}"), "there": THERE},
        led("other GET /there, Cookie: a=1"),
        clients=FOLLOWERS,
    ),
    "cookie-expires-later": keeps("a=1", b"a=1; Path=/; Expires=Wed, 01 Jan 2098 00:00:00 GMT"),
    "cookie-no-date": keeps("a=1", b"a=1; Path=/; Expires=never"),
    "cookie-malformed": keeps("", b"=; Path=/", b";;="),
    "cookie-deleted-by-date": changes(
        "", (b"a=1; Path=/",), (b"a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT",), "a=1"
    ),
    "cookie-deleted-by-old-date": changes(
        "", (b"a=1; Path=/",), (b"a=; Path=/; Expires=Thu, 01-Jan-1970 00:00:00 GMT",), "a=1"
    ),
    "cookie-deleted-by-age": changes("", (b"a=1; Path=/",), (b"a=; Path=/; Max-Age=0",), "a=1"),
    "cookie-deleted-elsewhere": changes(
        "a=1", (b"a=1; Path=/",), (b"a=; Path={here}/other; Max-Age=0",), "a=1"
    ),
    "cookie-changed": changes("a=2", (b"a=1; Path=/",), (b"a=2; Path=/",), "a=1"),
}


def https(port: TargetPort, reason: str) -> OddTarget:
    """A target with which TLS cannot be spoken."""
    return OddTarget({}, ClientResult("connect_error", reason), port, _HTTPS, clients=_ALL)


def no_http2(port: TargetPort, scheme: str = "http") -> OddTarget:
    """A server that does not speak HTTP/2."""
    return OddTarget(
        {},
        ClientResult("connect_error", "the server does not speak HTTP/2"),
        port,
        f"{scheme}://127.0.0.1:{{port}}/{{name}}/",
        clients=frozenset({ClientKind.NGHTTP2}),
    )


CONNECTIONS: dict[str, OddTarget] = {
    "tls": OddTarget(replies(head()), OK, TargetPort.TLS, _HTTPS, clients=_ALL, http2=answer),
    "tls-close-before-the-status-line": OddTarget(replies(end=Ending.CLOSE), HUNG_UP, TargetPort.TLS, _HTTPS),
    "tls-close-within-the-body": OddTarget(
        replies(_STATUS + b"Content-Length: 9\r\n\r\nhi", end=Ending.CLOSE),
        CUT_SHORT,
        TargetPort.TLS,
        _HTTPS,
    ),
    "tls-close-within-the-head": OddTarget(
        replies(_STATUS, end=Ending.CLOSE), CUT_SHORT, TargetPort.TLS, _HTTPS
    ),
    "tls-name-with-a-dot": OddTarget(
        replies(head()),
        OK,
        TargetPort.TLS,
        "https://dotted.example.:{port}/{name}/",
        clients=_ALL,
        http2=answer,
    ),
    "tls-expired": https(TargetPort.EXPIRED, "certificate not trusted: expired"),
    "tls-other-name": https(TargetPort.OTHER_NAME, "certificate not trusted: address does not match"),
    "tls-self-signed": https(TargetPort.SELF_SIGNED, "certificate not trusted: self-signed"),
    "tls-unknown-authority": https(
        TargetPort.UNKNOWN_AUTHORITY, "certificate not trusted: unknown authority"
    ),
    "tls-eof-in-the-handshake": https(TargetPort.HANGS_UP, "TLS: unexpected eof while reading"),
    "tls-reset-in-the-handshake": https(TargetPort.RESETS, "reset"),
    "tls-on-a-plain-port": https(TargetPort.UNUSED_PLAIN, "TLS: wrong version number"),
    "plain-on-a-tls-port": OddTarget(
        {}, status(400)._replace(asked=()), TargetPort.UNUSED_TLS, "http://127.0.0.1:{port}/{name}/"
    ),
    "no-http2-on-a-tls-port": no_http2(TargetPort.UNUSED_TLS),
    "no-http2-over-tls": no_http2(TargetPort.TLS, "https"),
    "no-http2-over-old-tls": no_http2(TargetPort.OLD_TLS, "https"),
    "no-http2-in-clear-text": no_http2(TargetPort.PLAIN),
    "no-http2-but-another-protocol": no_http2(TargetPort.NO_HTTP),
    "no-http2-and-hangs-up": no_http2(TargetPort.HANGS_UP),
    "no-http2-and-resets": no_http2(TargetPort.RESETS),
    "nobody-listens": OddTarget(
        {}, ClientResult("connect_error", "refused"), url="http://127.0.0.1:9/{name}/", clients=_ALL
    ),
    "no-such-name": OddTarget(
        {},
        ClientResult("connect_error", "name not found"),
        url="http://no-such-name.invalid/{name}/",
        clients=_ALL,
    ),
}


def tunnel(*parts: bytes, reason: str, end: Ending = Ending.CLOSE, waits: bool = False) -> OddTarget:
    """A proxy that makes no tunnel."""
    return OddTarget(
        {"": Reply(parts, end, waits=waits)},
        ClientResult("connect_error", reason, 0, ("CONNECT /",)),
        TargetPort.PROXY,
        "https://{name}.example/",
        clients=FOLLOWERS,
    )


def in_clear_text(reason: str, end: Ending) -> OddTarget:
    """A proxy that takes a plain request and does not answer."""
    result = ClientResult("disconnected", reason, 0, _ONE)
    return OddTarget(
        replies(end=end), result, TargetPort.PROXY, "http://any.example/{name}/", clients=FOLLOWERS
    )


PROXIES: dict[str, OddTarget] = {
    "proxy-407": tunnel(
        head(b"Proxy-Authenticate: Basic realm=x", status=b"407 Proxy Authentication Required"),
        reason="the proxy has answered with status 407",
    ),
    "proxy-403": tunnel(head(status=b"403 Forbidden"), reason="the proxy has answered with status 403"),
    "proxy-502": tunnel(head(status=b"502 Bad Gateway"), reason="the proxy has answered with status 502"),
    "proxy-close": tunnel(reason="the proxy hung up"),
    "proxy-reset": tunnel(reason="proxy: reset", end=Ending.RESET),
    "proxy-no-http": tunnel(b"220 mail.example ESMTP\r\n", reason=f"proxy: not HTTP: {_NO_HTTP}"),
    "proxy-then-close": tunnel(
        b"HTTP/1.1 200 Connection established\r\n\r\n", reason="TLS: unexpected eof while reading"
    ),
    "proxy-then-no-tls": tunnel(
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        head(),
        reason="TLS: wrong version number",
        waits=True,
    ),
    "proxy-407-in-clear-text": OddTarget(
        replies(head(status=b"407 Proxy Authentication Required")),
        status(407),
        TargetPort.PROXY,
        "http://any.example/{name}/",
        clients=FOLLOWERS,
    ),
    "proxy-close-in-clear-text": in_clear_text("the proxy hung up", Ending.CLOSE),
    "proxy-reset-in-clear-text": in_clear_text("proxy: reset", Ending.RESET),
}
TARGETS = BODIES | HEADS | STATUSES | ENDS | REDIRECTIONS | COOKIES | CONNECTIONS | PROXIES
REDIRECTED_ELSEWHERE = OK._replace(asked=("POST /, x", "other POST /there, x"))
NOT_PARSED = ClientResult("protocol_error", "not HTTP: HTTPParseError", 0, _ONE)
_TWELVE_TIMES = ("GET / (12 times)",)


def of_tunnel(outcome: str, reason: str) -> ClientResult:
    """What becomes of a request for which a proxy makes no tunnel."""
    return ClientResult(outcome, reason, 0, ("CONNECT /",))


DIFFERENT: dict[ClientKind, dict[str, dict[str, ClientResult]]] = {
    ClientKind.AIOHTTP: {
        "docs/targets.md: cookies of the engine go back to the origin that set them": {
            "cookie-other-port": led("other GET /there"),
        },
    },
    ClientKind.HTTP_USER: {
        "requests reads with http.client, which makes the best of any head": {
            **dict.fromkeys(("folded-first", "no-name", "length-twice-equal", "length-and-chunks"), OK),
            **dict.fromkeys(("nul-in-a-value", "close-within-the-head", "last-line-missing-close"), OK),
            **dict.fromkeys(("close-within-the-trailers", "tls-close-within-the-head"), OK),
        },
        "http.client takes the rest of a head that it cannot read for the body, up to the end": dict.fromkeys(
            (
                "blank-before-colon", "blank-before-colon-of-length", "tab-before-colon", "blank-in-name",
                "blanks-before-colon", "tab-before-colon-of-length", "blank-before-colon-of-chunks",
                "blank-before-colon-of-both-lengths",
                "no-colon", "length-list", "length-no-number", "length-negative",
            ),
            TIMEOUT,
        ),
        "http.client skips only 100 Continue": {
            "hints-first": OK._replace(status=103),
            "blank-before-colon-after-an-interim-answer": OK._replace(status=103),
            "close-after-an-interim-answer": OK._replace(status=103),
            "close-within-the-head-after-an-interim-answer": OK._replace(status=103),
            "interim-twice": OK._replace(status=102),
        },
        "Locust takes all other statuses than 400 to 599 for good": {
            "101": OK._replace(status=101),
            "status-999": OK._replace(status=999),
        },
        "urllib3 has one text for all chunks that it cannot read": dict.fromkeys(
            (
                "chunk-size-no-number", "chunk-size-no-number-apart", "chunk-size-missing",
                "chunk-longer-than-size",
            ),
            malformed("InvalidChunkLength"),
        ),
        "urllib3 raises a ValueError, which Locust takes for one of user code": {
            "chunk-size-negative": ClientResult("not counted", "", 0, _ONE),
        },
        "requests does not tell a reset in the handshake from a later one": {
            "tls-reset-in-the-handshake": ClientResult("disconnected", "reset"),
        },
        "requests has words of its own for what it cannot read": {
            "gzip-of-nothing": malformed("Error - while decompressing data: incorrect header check"),
            "header-of-100-kb": malformed("got more than bytes when reading header line"),
            "200-headers": malformed("got more than headers"),
            "status-of-four-digits": malformed("HTTP/ OK"),
            "no-status": malformed("HTTP/ OK"),
            "another-protocol": malformed("mail.example ESMTP"),
            "a-tls-alert": malformed("F"),
            "http-2.0": malformed("HTTP/"),
            "close-within-the-status-line": malformed("HTTP/."),
            "length-twice-different": ClientResult(
                "connect_error", "Content-Length contained multiple unmatching values", 0, _ONE
            ),
        },
        "requests follows as it does in Locust: PUT without its body, or as GET": {
            "301-of-put": OK._replace(asked=("PUT /, x", "PUT /there")),
            "302-of-put": OK._replace(asked=("PUT /, x", "GET /there")),
        },
        "docs/locust.md: what the locustfile sets stays as in Locust": {
            "307-of-post-elsewhere": REDIRECTED_ELSEWHERE,
        },
        "requests writes a Location as it writes every URL": {
            "location-lower-case-quotes": led("GET /%C3%A9"),
            "location-plus-and-quoted-letters": led("GET /A+b%2Fc?d=%20e+f"),
        },
        "urllib3 does not tell a proxy from a target": {
            "proxy-close": of_tunnel("disconnected", "the server hung up"),
            "proxy-reset": of_tunnel("disconnected", "reset"),
            "proxy-no-http": of_tunnel("protocol_error", "not HTTP: mail.example ESMTP"),
            "proxy-close-in-clear-text": HUNG_UP,
            "proxy-reset-in-clear-text": RESET,
        },
    },
    ClientKind.FAST_HTTP_USER: {
        "geventhttpclient parses by the letter, and says nothing more": dict.fromkeys(
            (
                "chunk-size-no-number", "chunk-size-no-number-apart",
                "chunk-size-negative", "chunk-size-missing", "chunk-longer-than-size",
                "body-too-long", "204-with-a-body", "304-with-a-body", "blank-before-colon",
                "blank-before-colon-of-length", "tab-before-colon", "blank-in-name", "folded", "folded-first",
                "blanks-before-colon", "tab-before-colon-of-length", "blank-before-colon-of-chunks",
                "blank-before-colon-of-both-lengths", "blank-before-colon-after-an-interim-answer",
                "no-colon", "no-name", "bare-lf", "length-twice-equal", "length-twice-different",
                "length-list", "length-no-number", "length-negative", "length-and-chunks", "nul-in-a-value",
                "101", "status-of-four-digits", "no-status", "another-protocol", "a-tls-alert",
            ),
            NOT_PARSED,
        ),
        "geventhttpclient takes an interim response for a part of the response": {
            "close-after-an-interim-answer": CUT_SHORT,
        },
        "geventhttpclient does not tell a reset in the handshake from a later one": {
            "tls-reset-in-the-handshake": ClientResult("disconnected", "reset"),
        },
        "geventhttpclient has no limit for heads, and looks at no version": {
            "header-of-100-kb": OK,
            "http-2.0": OK,
        },
        "geventhttpclient decompresses": {
            "gzip-of-nothing": malformed("Error - while decompressing data: incorrect header check"),
        },
        "geventhttpclient asks again on all connections of its pool, as in Locust": {
            "close-before-the-status-line": HUNG_UP._replace(asked=_TWELVE_TIMES),
            "reset-before-the-status-line": HUNG_UP._replace(asked=_TWELVE_TIMES),
            "tls-close-before-the-status-line": HUNG_UP._replace(asked=_TWELVE_TIMES),
            "proxy-close-in-clear-text": HUNG_UP._replace(asked=_TWELVE_TIMES),
            "proxy-reset-in-clear-text": HUNG_UP._replace(asked=_TWELVE_TIMES),
        },
        "geventhttpclient follows as it does in Locust: PUT as GET, HEAD not at all": {
            "301-of-put": OK._replace(asked=("PUT /, x", "GET /there")),
            "302-of-put": OK._replace(asked=("PUT /, x", "GET /there")),
            "303-of-head": ClientResult("ok", "", 303, ("HEAD /",)),
        },
        "Locust takes 300 for a failure there": {"300": status(300)},
        "docs/locust.md: what the locustfile sets stays as in Locust": {
            "307-of-post-elsewhere": REDIRECTED_ELSEWHERE,
        },
        "geventhttpclient writes a Location as it writes every URL": {
            "location-plus-and-quoted-letters": led("GET /A+b%2Fc?d=%20e+f"),
            "location-of-utf-8": led("GET /%C3%83%C2%A9"),
        },
        "geventhttpclient checks a certificate for the name with its dot": {
            "tls-name-with-a-dot": ClientResult(
                "connect_error", "certificate not trusted: host name does not match"
            ),
        },
        "geventhttpclient does not tell a proxy from a target": {
            "proxy-reset": of_tunnel("disconnected", "reset"),
        },
        "geventhttpclient has words of its own, and waits for the end of any head": dict.fromkeys(
            ("proxy-close", "proxy-no-http"),
            of_tunnel("connect_error", "Proxy closed the connection before answering the CONNECT request"),
        ),
    },
}  # fmt: skip
"""What clients make of targets, and why it may be something else than the table says."""
