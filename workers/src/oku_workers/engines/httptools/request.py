"""What request `i` is, as the bytes that go over the wire.

Everything but the index and the row is written down in advance: making a request is formatting text once.
"""

from collections.abc import Callable
from typing import NamedTuple

from yarl import URL

from oku_core.http_client.http1_connection import PIECE_BYTES
from oku_core.http_client.request_head import (
    METHODS_WITHOUT_BODY,
    REQUEST_LINE_END,
    build_line_start,
    write_headers,
)
from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.values.template import Rows, Template
from oku_workers.engines.http.request_parts import RequestParts, list_all_headers, split_request

BuildRequest = Callable[[int], bytes]


class SharedBody(NamedTuple):
    """A function from an index to the bytes of its request, and a body that follows the bytes of each.

    Attributes:
        build: makes the bytes of a request, or those before `body`.
        body: the shared body; empty if it is a part of each request.
    """

    build: BuildRequest
    body: bytes = b""


def build_request(template: RequestTemplate, origin: URL, rows: Rows | None = None) -> BuildRequest:
    """A function from an index to the bytes of its request; the arguments are those of `share_body`."""
    build, body = share_body(template, origin, rows)
    return (lambda index: build(index) + body) if body else build


def share_body(template: RequestTemplate, origin: URL, rows: Rows | None = None) -> SharedBody:
    """What makes the requests of a template; `ValueError` when they cannot be written down.

    A long body that all requests share is not copied into each.

    Args:
        template: what to send.
        origin: where it goes.
        rows: the rows of the run, if it has data that its requests use.
    """
    parts = split_request(template)
    head = _build_head(template, parts, origin)
    body = Template() if parts.body is None else parts.body
    if _has_header(template, "content-length") or (
        parts.body is None and template.method in METHODS_WITHOUT_BODY
    ):
        return _join(head + "\r\n", body, rows)
    if body.is_constant:
        return _join(head + f"Content-Length: {body.fixed_bytes}\r\n\r\n", body, rows)
    pattern = (head + "Content-Length: ").build_pattern() + b"%d\r\n\r\n" + body.build_pattern()
    fixed = body.fixed_bytes
    list_values, in_head = (head + body).bind_values(rows), head.places

    def build(index: int) -> bytes:
        values = list_values(index)
        in_body = values[in_head:]
        return pattern % (*values[:in_head], fixed + sum(map(len, in_body)), *in_body)

    return SharedBody(build)


def _join(head: Template, body: Template, rows: Rows | None) -> SharedBody:
    """A head, and a body that is a part of each request unless it is long and the same for all."""
    if body.is_constant and body.fixed_bytes > PIECE_BYTES:
        return SharedBody(head.bind_bytes(rows), body.bind_bytes()(0))
    return SharedBody((head + body).bind_bytes(rows))


def _build_head(template: RequestTemplate, parts: RequestParts, origin: URL) -> Template:
    """The request line and the headers, each with its line break."""
    line = Template([build_line_start(template.method, origin)]) + parts.target.join() + REQUEST_LINE_END
    return line + write_headers(list_all_headers(template, origin, parts))


def _has_header(template: RequestTemplate, name: str) -> bool:
    return any(header.is_named(name) for header in template.headers)
