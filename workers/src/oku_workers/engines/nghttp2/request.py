"""Builds request `i` as header fields and a body of HTTP/2; constant fields are built in advance."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from yarl import URL

from oku_core.http_client.request_head import METHODS_WITHOUT_BODY, check_header
from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.values.template import Rows, Template
from oku_workers.engines.http.request_parts import list_all_headers, split_request

Headers = tuple[tuple[bytes, bytes], ...]
"""Names in lower case with their values; first those that begin with a colon."""


BuildHeaders = Callable[[int], Headers]
"""Makes the fields of request `i`; none if it cannot be sent."""


class BuildRequest(NamedTuple):
    """Makes the requests of one kind; both functions take an index.

    Attributes:
        headers: gives the fields, those that begin with a colon first; none if the request cannot be sent.
        body: builds the body; None without one.
    """

    headers: BuildHeaders
    body: Callable[[int], bytes] | None


NOTHING = BuildRequest(lambda _: (), None)
"""Makes requests that cannot be sent."""
_HOST, _LENGTH = "host", "content-length"
_BLANKS = b" \t"
"""No value begins or ends with these: they would make a request malformed, and HTTP/1.1 ignores them
(RFC 9113, section 8.2.1; RFC 9110, section 5.5)."""


def build_request(template: RequestTemplate, origin: URL, rows: Rows | None = None) -> BuildRequest:
    """The builder of the requests of a template; `ValueError` if they cannot be written.

    Args:
        template: of the requests.
        origin: where it goes.
        rows: the rows of the run, if it has data that its requests use.
    """
    fields, body = list(_list_fields(template, origin)), split_request(template).body
    has_length = any(name == _LENGTH for name, _ in fields)
    if body is None:
        if not has_length and template.method not in METHODS_WITHOUT_BODY:
            fields.append((_LENGTH, Template(["0"])))
        return BuildRequest(_bind_fields(fields, rows), None)
    build_body = body.bind_bytes(rows)
    if body.is_constant and not has_length:
        fields.append((_LENGTH, Template([str(body.fixed_bytes)])))
    build_headers = _bind_fields(fields, rows)
    if body.is_constant or has_length:
        return BuildRequest(build_headers, build_body)

    fixed, list_values = body.fixed_bytes, body.bind_values(rows)

    def add_length(index: int) -> Headers:
        length = fixed + sum(map(len, list_values(index)))
        return (*build_headers(index), (b"content-length", b"%d" % length))

    return BuildRequest(add_length, build_body)


def _list_fields(template: RequestTemplate, origin: URL) -> Iterator[tuple[str, Template]]:
    """All fields but the length of a body, in the order in which they are sent (RFC 9113, section 8.3.1)."""
    parts = split_request(template)
    headers = [(name.lower(), value) for name, value in list_all_headers(template, origin, parts)]
    yield ":method", Template([template.method])
    yield ":scheme", Template([origin.scheme])
    yield ":authority", dict(headers)[_HOST]
    yield ":path", parts.target.join()
    yield from (header for header in headers if header[0] != _HOST)


def _bind_fields(fields: list[tuple[str, Template]], rows: Rows | None) -> Callable[[int], Headers]:
    """A function from an index to the fields; those in a row that are constant are made once."""
    for name, value in fields:
        check_header(name, value.literal)
    varying = [place for place, (_, value) in enumerate(fields) if not value.is_constant]
    constant = tuple((name.encode(), value.literal.encode()) for name, value in fields)
    if not varying:
        return lambda _: constant
    if len(varying) == 1:
        [place] = varying
        before, (field, _), after = constant[:place], constant[place], constant[place + 1 :]
        build_value = _bind_value(*fields[place], rows)
        return lambda index: (*before, (field, build_value(index)), *after)
    builders = [(name.encode(), _bind_value(name, value, rows)) for name, value in fields]
    return lambda index: tuple([(name, build_value(index)) for name, build_value in builders])


def _bind_value(name: str, value: Template, rows: Rows | None) -> Callable[[int], bytes]:
    """A function from an index to the value of a field."""
    build = value.bind_bytes(rows)
    if not value.values or name == ":path":
        return build
    return lambda index: build(index).strip(_BLANKS)
