import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.parser import Source, SpecError, parse_spec
from oku_core.spec.values.request_content import (
    Header,
    asks_to_close,
    find_body_type,
    find_framing_fault,
    parse_body,
    parse_headers,
)

OWN = "; leave the header out, Oku sends it"
REFUSED = [
    ("Content-Length: 5", "größe", f"Content-Length: 5: the body has 7 bytes{OWN}"),
    ("content-length: 5", None, f"content-length: 5: the body has 0 bytes{OWN}"),
    ("Content-Length: -0", "", f"Content-Length: -0: the body has 0 bytes{OWN}"),
    ("Content-Length: ٣", "abc", f"Content-Length: ٣: the body has 3 bytes{OWN}"),
    ("Content-Length: 3", "{i}", f"Content-Length: 3: the length of a body with {{i}} in it varies{OWN}"),
    ("Content-Length: {i}", "abc", f"Content-Length: {{i}}: the body has 3 bytes{OWN}"),
    ("Transfer-Encoding: chunked", "a", "Transfer-Encoding: chunked: bodies are sent whole"),
    ("TRANSFER-ENCODING:identity", None, "TRANSFER-ENCODING: identity: bodies are sent whole"),
    ("Expect: 100-continue", "a", "Expect: 100-continue: bodies are sent at once"),
    ("Upgrade: h2c", None, "Upgrade: h2c: connections speak one protocol"),
    ("Connection: upgrade", None, "Connection: upgrade: only close and keep-alive are allowed"),
    (
        "Connection: keep-alive, {i}",
        None,
        "Connection: keep-alive, {i}: only close and keep-alive are allowed",
    ),
]


def read_fault(value: object) -> str:
    """Return the error for a wrong value."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse_headers(value)
    return str(caught.value)


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
    """A file may have them as a YAML mapping, in which a number stays a number."""
    assert parse_headers(value) == headers


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("X-Id", "X-Id is not of the form 'Name: value'"),
        ("", "'' is not of the form 'Name: value'"),
        (": b", ": b is not of the form 'Name: value'"),
        ("X Id: b", "X Id is not a valid header name: use ASCII letters, digits and -"),
        ("X-{i}: b", "X-{i} is not a valid header name: use ASCII letters, digits and -"),
        ("Ä: b", "Ä is not a valid header name: use ASCII letters, digits and -"),
        ("A: b\r\nC: d", r"'A: b\r\nC: d' has line breaks or control characters in its value"),
        ("A: b\nC: d", r"'A: b\nC: d' has line breaks or control characters in its value"),
        ("A: b\n", r"'A: b\n' has line breaks or control characters in its value"),
        ("A: \x00", r"'A: \x00' has line breaks or control characters in its value"),
        ("A: \x7f", r"'A: \x7f' has line breaks or control characters in its value"),
        ({"A": "b\r\nC: d"}, r"'A: b\r\nC: d' has line breaks or control characters in its value"),
        ({"A\r\nB": "c"}, r"'A\r\nB' is not a valid header name: use ASCII letters, digits and -"),
        ({"A": None}, "null is not text"),
        ({"A": True}, "true is not text, put it in quotes"),
        ({"A": ["b"]}, "['b'] is not text"),
        ({5: "b"}, "5 is not text, put it in quotes"),
        ([{"A": "b"}], "{'A': 'b'} is not text"),
        ("A: \ud800", r"'A: \ud800' has characters that UTF-8 cannot encode"),
        (None, "null is not text"),
        (5, "5 is not text, put it in quotes"),
    ],
)
def test_a_header_is_a_name_and_one_line(value: object, fault: str) -> None:
    """Nothing that would end the header and begin another one is accepted."""
    assert read_fault(value) == fault


@given(st.text(), st.text())
def test_no_header_makes_a_second_line(name: str, content: str) -> None:
    """An accepted header has a colon, no line break, and no control character but the tab."""
    try:
        [header] = parse_headers({name: content})
    except ValueError:
        return
    assert header == f"{name}: {content}"
    assert not {chr(code) for code in (*range(32), 127)} - {"\t"} & set(header)


@given(
    st.text(st.characters(codec="utf-8")).filter(lambda body: "{i}" not in body and not body.startswith("@")),
    st.integers(0, 200),
)
def test_a_length_is_allowed_if_it_is_that_of_the_bytes(body: str, length: int) -> None:
    """The bytes are those of UTF-8, as they are sent."""
    is_allowed = find_framing_fault([Header(f"Content-Length: {length}")], body) is None
    assert is_allowed is (length == len(body.encode()))


def test_a_header_that_breaks_the_framing_is_refused() -> None:
    """The error shows the header with its value, and says what is true or allowed."""
    for header, body, fault in REFUSED:
        told = find_framing_fault([Header(header)], body)
        assert told is not None
        assert told.startswith(fault)
    cases: list[tuple[list[str], str | None]] = [
        ([], "x{i}"),
        (["Content-Length: 7"], "größe"),
        (["Content-Length: 0"], None),
        (["Connection: close"], None),
        (["connection: Keep-Alive, close", "Keep-Alive: 5"], None),
        (["Host: {i}.example"], None),
        (["X-Content-Length: 5", "Accept: a", "Accept: b"], "abc"),
    ]
    for headers, body in cases:
        # A correct framing header may be sent.
        assert find_framing_fault(list(map(Header, headers)), body) is None
    # A header that may occur once is not repeated. The target would have to choose one of the values.
    for name in ["Host", "Content-Length"]:
        twice = parse_headers([f"{name}: 0", f"{name.lower()}: 0"])
        assert find_framing_fault(twice, None) == f"{name}: is given twice"
    # The error names the place of the header. That is where the header is, wherever the body is.
    file = Source("spec.yaml", {"header": {"Content-Length": "5"}})
    with pytest.raises(SpecError, match=r"^spec\.yaml: header: Content-Length: 5: the body has 3 bytes"):
        parse_spec(file, Source(None, {"body": "abc"}))
    # A request to close the connection is recognized. Case and other options do not matter.
    assert asks_to_close(parse_headers(["A: b", "CONNECTION: keep-alive , Close"]))
    assert not asks_to_close(parse_headers(["Connection: keep-alive", "X: close"]))


@pytest.mark.parametrize("body", ["", "\r\n", "\ufeffa\n", '{"a": {"b": 1}}', "a\x00b"])
def test_a_body_is_sent_as_it_is_written(body: str) -> None:
    """Nothing is stripped, and braces need no escape."""
    assert parse_body(body) == body


def test_a_body_has_a_type_by_its_content() -> None:
    """Placeholders may stand where JSON wants a value."""
    for body in [
        "{}",
        '{"a": {"b": 1}}',
        ' [1, "x"]\n',
        '{"id": {i}, "name": "item {i}"}',
        '{"key": "{env:KEY}", "n": {file:number}}',
    ]:
        assert find_body_type(body) == "application/json"
    for body in ['{"u": {id}, "n": "{name}"}', "[{id}]", "{row}", '{"event": {row}}']:
        # Columns stand for values, and a row of JSON for an object.
        assert find_body_type(body, ("id", "name", "row"), "row") == "application/json"
    assert find_body_type("{id}", ("id",)) is find_body_type("{row}", ("row",)) is None
    for body in ["a=1", "a=1&b=2", "id={i}&key={env:KEY}", "mail=me@example.org&at[]=%2F+", "a="]:
        # Pairs of names and values are a form. As browsers and curl send them.
        assert find_body_type(body) == "application/x-www-form-urlencoded"
    for body in [
        "",
        "5",
        '"text"',
        "{name}",
        "{i}",
        "{file:body.json}",
        '{"a": 1}x',
        "a=1\nb=2",
        "a b=1",
        "a=1&",
        "=1",
        "TWFu==",
        "<a b=1>",
        "[" * 100_000,
    ]:
        # Any other text has no type.
        assert find_body_type(body) is None
