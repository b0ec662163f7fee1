"""A request as people are shown it: what goes out, without secrets, and as HTTP/1.1 would write it."""

import msgspec

from oku_cli.replay.run_request import RunRequest
from oku_cli.report.masking import mask_header
from oku_cli.views.request_view import ShownRequest
from oku_core.errors import UserError
from oku_core.http_client.client_rules import build_origin
from oku_core.process.redaction import MASK, redact
from oku_core.spec.description import RequestLines
from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.template import SECRET_PLACEHOLDER
from oku_workers.engines.httptools.request import build_request

_END = b"\r\n\r\n"


def show_request(request: RunRequest) -> ShownRequest:
    """Write a request down, with its body in place of a file; names of secrets stay as they are.

    Raises:
        UserError: it cannot be sent, so that there is nothing to show.
    """
    template = request.template
    try:
        origin = build_origin(template.url)
        content = build_request(_mask(template), origin, request.build_rows())(request.index)
    except ValueError as error:
        raise UserError(f"request {request.index} of run {request.run} cannot be sent: {error}") from error
    head, _, body = content.partition(_END)
    protocol = "HTTP/2" if request.spec.http2 else "HTTP/1.1"
    line, *headers = head.decode().split("\r\n")
    text = body.decode(errors="replace")
    own_length = SECRET_PLACEHOLDER.search(text) and not any(
        header.is_named("content-length") for header in template.headers
    )
    shown = [
        (name, _mask_own(name, value, template, is_unknown=bool(own_length)))
        for name, _, value in (header.partition(": ") for header in headers)
    ]
    return ShownRequest(
        run=request.run,
        index=request.index,
        target=template.name,
        url=RequestLines(request.spec).build(request.index, request.row or {}).url,
        line=redact(f"{line.removesuffix('HTTP/1.1')}{protocol}", queries=False),
        headers=shown,
        body=None if template.body is None or text.encode() != body else text,
        body_bytes=len(body),
        row=request.row,
    )


def _mask(template: RequestTemplate) -> RequestTemplate:
    masked = tuple(Header(mask_header(header, template.columns)) for header in template.headers)
    return msgspec.structs.replace(template, headers=masked)


def _mask_own(name: str, value: str, template: RequestTemplate, *, is_unknown: bool) -> str:
    """Mask what the spec does not say itself: the user of the URL, and the length of a body with a secret."""
    if name == "Content-Length" and is_unknown:
        return MASK
    if name == "Authorization" and not any(header.is_named("authorization") for header in template.headers):
        return f"Basic {MASK}"
    return value
