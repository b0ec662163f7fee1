"""What request `i` is, as the bytes that go over the wire.

Everything but the index is written down in advance: making a request is formatting bytes once.
"""

import base64
import re
from collections.abc import Callable, Iterator

from yarl import URL

from oku_core.spec.request_template import RequestTemplate
from oku_core.spec.values.placeholder import INDEX_PLACEHOLDER
from oku_core.spec.values.url import Url
from oku_workers.engines.defaults import BODY_TYPE, DEFAULT_HEADERS, METHODS_WITHOUT_BODY
from oku_workers.engines.urls import build_target

BuildRequest = Callable[[int], bytes]

_MALFORMED = re.compile(r"[\r\n\0]")
_PLACEHOLDER = INDEX_PLACEHOLDER.encode()


def build_request(template: RequestTemplate, origin: URL) -> BuildRequest:
    """A function from an index to the bytes of its request; `ValueError` when it cannot be written down.

    Args:
        template: what to send.
        origin: where its URL goes.
    """
    target = _build_target(template.url)
    lines = [f"{template.method} {target} HTTP/1.1", *_list_headers(template, origin)]
    for line in lines:
        if _MALFORMED.search(line):
            raise ValueError(f"{line.partition(':')[0]!r} has a line break or NUL in its value")
    body = "" if template.body is None else template.body
    is_bare = template.body is None and template.method in METHODS_WITHOUT_BODY
    if is_bare or _has_header(template, "content-length"):
        return _build_template("\r\n".join([*lines, "", body]))
    if INDEX_PLACEHOLDER not in body:
        return _build_template("\r\n".join([*lines, f"Content-Length: {len(body.encode())}", "", body]))
    build_head, build_body = _build_template("\r\n".join(lines)), _build_template(body)

    def build(index: int) -> bytes:
        content = build_body(index)
        return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (build_head(index), len(content), content)

    return build


def _build_target(url: Url) -> str:
    target = build_target(url)
    return f"{target.path}?{target.query}" if target.query else target.path


def _list_headers(template: RequestTemplate, origin: URL) -> Iterator[str]:
    """Oku's own first, unless the spec gives one of that name."""
    own = {"Host": origin.host_port_subcomponent or "", **DEFAULT_HEADERS}
    if origin.user is not None or origin.password is not None:
        credentials = f"{origin.user or ''}:{origin.password or ''}".encode()
        own["Authorization"] = f"Basic {base64.b64encode(credentials).decode()}"
    if template.body is not None:
        own["Content-Type"] = BODY_TYPE
    for name, value in own.items():
        if not _has_header(template, name.lower()):
            yield f"{name}: {value}"
    for header in template.headers:
        yield f"{header.name}: {header.value}"


def _has_header(template: RequestTemplate, name: str) -> bool:
    return any(header.is_named(name) for header in template.headers)


def _build_template(text: str) -> BuildRequest:
    parts = text.encode().split(_PLACEHOLDER)
    if len(parts) == 1:
        return lambda _: parts[0]
    template = b"%d".join(part.replace(b"%", b"%%") for part in parts)
    if len(parts) == 2:
        return template.__mod__
    places = len(parts) - 1
    return lambda index: template % ((index,) * places)
