from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.target import (
    KNOWN_PLACEHOLDERS,
    parse_body,
    parse_expect_status,
    parse_headers,
    parse_method,
    parse_proxy,
    parse_text,
    parse_urls,
)

Parser = Callable[[object], object]
PARSERS: list[Parser] = [
    parse_urls,
    parse_headers,
    parse_method,
    parse_expect_status,
    parse_text,
    parse_proxy,
]


def read_fault(parse: Parser, value: object) -> str:
    """What a reader says of a wrong value."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse(value)
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "http://localhost:80/",
        "https://example.com/items/{i}",
        "http://example.com/?id={i}&again={i}",
        "http://[::1]:80/{i}",
        "http://127.0.0.1:65535/a%20b",
        "http://user:secret@example.com/",
        "http://bücher.example/ä",
        "HTTP://EXAMPLE.COM./",
        "http://example.com:/",
    ],
)
def test_a_url_stays_as_it_was_written(url: str) -> None:
    """Alone or in a list, `{i}` in path or query or none at all."""
    assert parse_urls(url) == (url,)
    assert parse_urls([url, url]) == (url, url)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "'' has no scheme, write http://host/"),
        ("example.com/{i}", "example.com/{i} has no scheme, write http://example.com/{i}"),
        ("//example.com/", "//example.com/ has no scheme, write http://example.com/"),
        ("://example.com/", "://example.com/ has no scheme, write http://example.com/"),
        ("x?y=http://z", "x?y=http://z has no scheme, write http://x?y=http://z"),
        ("ftp://example.com/", "ftp://example.com/ has the scheme ftp, only http and https are known"),
        ("http://", "http:// has no host"),
        ("http:///path", "http:///path has no host"),
        ("http://:80/", "http://:80/ has no host"),
        ("http://user@/", "http://***@/ has no host"),
        ("http://[::1/", "http://[::1/ has a host that cannot be"),
        ("http://[nonsense]/", "http://[nonsense]/ has a host that cannot be"),
        ("http://a..b/", "http://a..b/ has a host that cannot be"),
        ("http://\u2100/", "http://\u2100/ has a host that cannot be"),
        ("http://h:0/", "http://h:0/ has a port that is not between 1 and 65535"),
        ("http://h:65536/", "http://h:65536/ has a port that is not between 1 and 65535"),
        ("http://h:-1/", "http://h:-1/ has a port that is not between 1 and 65535"),
        ("http://h:x/", "http://h:x/ has a port that is not between 1 and 65535"),
        ("http://h:٣/", "http://h:٣/ has a port that is not between 1 and 65535"),
        ("http://{i}.h/", "http://{i}.h/ has {i} in its host, it may stand in path and query"),
        ("http://h:{i}/", "http://h:{i}/ has {i} in its host, it may stand in path and query"),
        ("http://h/{n}", f"http://h/{{n}} has the placeholder {{n}}, known are {KNOWN_PLACEHOLDERS}"),
        ("http://h/{i", f"http://h/{{i has the placeholder {{i, known are {KNOWN_PLACEHOLDERS}"),
        ("http://h/i}", f"http://h/i}} has the placeholder }}, known are {KNOWN_PLACEHOLDERS}"),
        ("http://h/{{i}}", f"http://h/{{{{i}}}} has the placeholder {{0}}, known are {KNOWN_PLACEHOLDERS}"),
        ("http://h/#part", "http://h/#part has a fragment (#), which is never sent"),
        ("http://h/a b", "http://h/a b has white space or control characters in it"),
        ("http://h/\t", r"'http://h/\t' has white space or control characters in it"),
        ("http://h/\r\nHost: x", r"'http://h/\r\nHost: x' has white space or control characters in it"),
        ("http://h/\x00", r"'http://h/\x00' has white space or control characters in it"),
        ("http://h/\u2028", r"'http://h/\u2028' has white space or control characters in it"),
        ("http://h/\ud800", r"'http://h/\ud800' has characters that UTF-8 cannot write"),
        ([], "there is no URL"),
        (["http://h/", "h"], "h has no scheme, write http://h"),
        (["http://h/", None], "null is not text"),
        (None, "null is not text"),
        (5, "5 is not text, put it in quotes"),
        ({"http": "//h"}, "{'http': '//h'} is not text"),
    ],
)
def test_a_wrong_url_is_told_what_is_wrong_with_it(url: object, fault: str) -> None:
    """Each fault has its sentence, with the URL in it."""
    assert read_fault(parse_urls, url) == fault


@pytest.mark.parametrize(
    "url", ["http://proxy.example:3128", "http://127.0.0.1:3128/", "http://me:secret@[::1]:8080"]
)
def test_a_proxy_stays_as_it_was_written(url: str) -> None:
    """With a user perhaps."""
    assert parse_proxy(url) == url


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://h:3128", "https://h:3128 is not a proxy such as http://proxy.example:3128"),
        ("http://h/path", "http://h/path is not a proxy such as http://proxy.example:3128"),
        ("http://h/?q", "http://h/?q is not a proxy such as http://proxy.example:3128"),
        ("socks5://h:1080", "socks5://h:1080 has the scheme socks5, only http and https are known"),
        ("h:3128", "h:3128 has no scheme, write http://h:3128"),
        ("http://h:3128/{i}", "http://h:3128/{i} is not a proxy such as http://proxy.example:3128"),
        (["http://h"], "['http://h'] is not text"),
    ],
)
def test_what_is_no_proxy_is_named(url: object, fault: str) -> None:
    """Only plain HTTP is spoken to proxies, and nothing is asked of the proxy itself."""
    assert read_fault(parse_proxy, url) == fault


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        ("X-Id: {i}", ("X-Id: {i}",)),
        (["A: b", "A: c"], ("A: b", "A: c")),
        (("A: b",), ("A: b",)),
        ("Empty:", ("Empty:",)),
        ("A: b: c\td", ("A: b: c\td",)),
        ("A: naïve", ("A: naïve",)),
        ({"A": "b", "Content-Length": 5, "Rate": 0.5}, ("A: b", "Content-Length: 5", "Rate: 0.5")),
        ([], ()),
    ],
)
def test_headers_are_lines_or_a_mapping(value: object, headers: tuple[str, ...]) -> None:
    """In a file they may be written as YAML has them, a number as a number."""
    assert parse_headers(value) == headers


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("X-Id", "X-Id is not of the form 'Name: value'"),
        ("", "'' is not of the form 'Name: value'"),
        (": b", ": b is not of the form 'Name: value'"),
        ("X Id: b", "X Id is not a header name, of ASCII letters, digits and -"),
        ("X-{i}: b", "X-{i} is not a header name, of ASCII letters, digits and -"),
        ("Ä: b", "Ä is not a header name, of ASCII letters, digits and -"),
        ("A: b\r\nC: d", r"'A: b\r\nC: d' has line breaks or control characters in its value"),
        ("A: b\nC: d", r"'A: b\nC: d' has line breaks or control characters in its value"),
        ("A: b\n", r"'A: b\n' has line breaks or control characters in its value"),
        ("A: \x00", r"'A: \x00' has line breaks or control characters in its value"),
        ("A: \x7f", r"'A: \x7f' has line breaks or control characters in its value"),
        ({"A": "b\r\nC: d"}, r"'A: b\r\nC: d' has line breaks or control characters in its value"),
        ({"A\r\nB": "c"}, r"'A\r\nB' is not a header name, of ASCII letters, digits and -"),
        ({"A": None}, "null is not text"),
        ({"A": True}, "true is not text, put it in quotes"),
        ({"A": ["b"]}, "['b'] is not text"),
        ({5: "b"}, "5 is not text, put it in quotes"),
        ([{"A": "b"}], "{'A': 'b'} is not text"),
        ("A: \ud800", r"'A: \ud800' has characters that UTF-8 cannot write"),
        (None, "null is not text"),
        (5, "5 is not text, put it in quotes"),
    ],
)
def test_a_header_is_a_name_and_one_line(value: object, fault: str) -> None:
    """Nothing that would end the header and begin another one gets in."""
    assert read_fault(parse_headers, value) == fault


@given(st.text(), st.text())
def test_no_header_makes_a_second_line(name: str, content: str) -> None:
    """Whatever is accepted has a colon and neither line end nor control character but the tab."""
    try:
        [header] = parse_headers({name: content})
    except ValueError:
        return
    assert header == f"{name}: {content}"
    assert not {chr(code) for code in (*range(32), 127)} - {"\t"} & set(header)


@pytest.mark.parametrize(
    ("value", "method"), [("GET", "GET"), ("get", "GET"), ("Post", "POST"), ("PURGE", "PURGE")]
)
def test_a_method_is_sent_in_capitals(value: str, method: str) -> None:
    """Users need not press shift, and a method that we never heard of is one."""
    assert parse_method(value) == method


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", "'' is not a method such as GET or POST"),
        ("GET /", "GET / is not a method such as GET or POST"),
        ("GET\r\n", r"'GET\r\n' is not a method such as GET or POST"),
        ("connect", "connect is not a method such as GET or POST"),
        ("po\u017ft", "po\u017ft is not a method such as GET or POST"),
        ("ß", "ß is not a method such as GET or POST"),
        (True, "true is not text, put it in quotes"),
        (None, "null is not text"),
        (["GET"], "['GET'] is not text"),
    ],
)
def test_what_is_no_method_is_named(value: object, fault: str) -> None:
    """Letters that only become ASCII in capitals, and what YAML makes of `on`, are no method."""
    assert read_fault(parse_method, value) == fault


@pytest.mark.parametrize(
    ("value", "statuses"),
    [
        ("200", ("200",)),
        (200, ("200",)),
        ("2xx", ("2xx",)),
        ("2XX", ("2xx",)),
        ("200, 404", ("200", "404")),
        (["200,404", 5, "5xx"], None),
        (["200,404", 503, "5xx"], ("200", "404", "503", "5xx")),
        ("100", ("100",)),
        ("599", ("599",)),
    ],
)
def test_statuses_come_in_lists_with_commas_or_by_the_hundred(
    value: object, statuses: tuple[str, ...] | None
) -> None:
    """Command line and file may write them as is convenient."""
    if statuses is None:
        assert read_fault(parse_expect_status, value) == "5 is not a status such as 200 or 2xx"
    else:
        assert parse_expect_status(value) == statuses


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("600", "600 is not a status such as 200 or 2xx"),
        ("6xx", "6xx is not a status such as 200 or 2xx"),
        ("0xx", "0xx is not a status such as 200 or 2xx"),
        ("20", "20 is not a status such as 200 or 2xx"),
        ("2000", "2000 is not a status such as 200 or 2xx"),
        ("20x", "20x is not a status such as 200 or 2xx"),
        ("2٣٣", "2٣٣ is not a status such as 200 or 2xx"),
        ("200,", "'' is not a status such as 200 or 2xx"),
        ("", "'' is not a status such as 200 or 2xx"),
        ("ok", "ok is not a status such as 200 or 2xx"),
        (200.0, "200.0 is not a status such as 200 or 2xx"),
        (-200, "-200 is not a status such as 200 or 2xx"),
        (True, "true is not text, put it in quotes"),
        (None, "null is not text"),
        ([], "there is no status"),
        ([[200]], "[200] is not text"),
        ({200: "ok"}, "{200: 'ok'} is not text"),
    ],
)
def test_what_is_no_status_is_named(value: object, fault: str) -> None:
    """A run that expects nothing, or what no server can send, is not begun."""
    assert read_fault(parse_expect_status, value) == fault


@pytest.mark.parametrize("text", ["", "{}", '{"id": {i}}', "a\nb\x00", "日本"])
def test_text_is_any_text(text: str) -> None:
    """A body has lines, braces and control characters as it likes."""
    assert parse_text(text) == text


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "null is not text"),
        (True, "true is not text, put it in quotes"),
        (1_000, "1000 is not text, put it in quotes"),
        (0.5, "0.5 is not text, put it in quotes"),
        (["a"], "['a'] is not text"),
        ({"a": 1}, "{'a': 1} is not text"),
        ("\udcff", r"'\udcff' has characters that UTF-8 cannot write"),
    ],
)
def test_text_is_not_guessed(value: object, fault: str) -> None:
    """What YAML read as something else was perhaps written otherwise: 1_000 would be sent as 1000."""
    assert read_fault(parse_text, value) == fault


@pytest.mark.parametrize("parse", PARSERS)
@given(value=st.text() | st.text(alphabet="http:/[]{}i@?#. x2,AGET0\n٣"))
def test_any_text_is_read_or_refused_in_one_line(parse: Parser, value: str) -> None:
    """No reader raises another exception, and what it accepts it accepts again."""
    message = "no error"
    try:
        read = parse(value)
    except ValueError as error:
        message = str(error)
    else:
        assert parse(read) == read
    assert message.isprintable()


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_urls, "http://{env:USER}:{file:pass.txt}@h:8080/{env:PATH_1}/{i}?token={file:a-b_c}"),
        (parse_proxy, "http://me:{env:PASSWORD}@proxy:3128"),
        (parse_headers, "Authorization: Bearer {env:TOKEN}"),
        (parse_body, '{"key": "{file:key}", "n": {i}}'),
    ],
)
def test_secrets_may_be_named(parse: Parser, text: str) -> None:
    """In all that is sent; what was written stays."""
    assert parse(text) in (text, (text,))


@pytest.mark.parametrize("name", ["", "A-B", "1A", "A:B", "A"])
@pytest.mark.parametrize(
    ("parse", "start"), [(parse_urls, "http://h/?a="), (parse_headers, "A: "), (parse_body, "")]
)
def test_a_name_of_a_secret_that_cannot_be_is_told(parse: Parser, start: str, name: str) -> None:
    """It would be sent as it is written, and nobody would know."""
    text = f"{{env:{name}" if name == "A" else f"{{env:{name}}}"
    assert "is not of the form {env:NAME} or {file:NAME}" in read_fault(parse, f"{start}{text}")


@pytest.mark.parametrize("name", ["../key", ".hidden", "a/b", "", "x" * 254])
def test_a_file_of_a_secret_is_in_its_folder(name: str) -> None:
    """Its name is no path."""
    assert "is not of the form" in read_fault(parse_body, f"{{file:{name}}}")


@pytest.mark.parametrize("host", ["{env:HOST}", "h:{env:PORT}", "a.{file:x}.example", "me@{env:HOST}"])
def test_no_secret_stands_in_a_host(host: str) -> None:
    """It would be shown to every resolver on the way."""
    assert "has a secret in its host" in read_fault(parse_urls, f"http://{host}/x@y")


def test_other_braces_of_a_body_stay() -> None:
    """A body is often JSON."""
    for body in ('{"env": 1}', "{env}", "{x:y}", "{ env:A }"):
        assert parse_body(body) == body
