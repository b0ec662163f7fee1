"""What a spec may say when it speaks HTTP/2, and what only then.

A fault is the key that is to blame and what is wrong; the parser adds where that key was given.
"""

from collections.abc import Collection, Iterable, Iterator

from oku_core.errors import format_value
from oku_core.spec.fields import FIELDS
from oku_core.spec.load_rules import Fault
from oku_core.spec.request_template import list_headers
from oku_core.spec.spec import HTTP1_ENGINES, Engine, Spec
from oku_core.spec.values.header import Header

_OF_CONNECTIONS = frozenset({"connection", "proxy-connection", "keep-alive"})
"""Headers that HTTP/2 has frames for in their place (RFC 9113, section 8.2.2)."""
_USER_CODE = "cannot be combined with user code, which speaks HTTP/1.1"


def find_http2_fault(spec: Spec, given: Collection[str]) -> Fault | None:
    """Say which key does not go with HTTP/2, or with HTTP/1.1; None if all do.

    Args:
        spec: the spec.
        given: the keys that the user gave.
    """
    return next(_iter_http2_faults(spec, given) if spec.http2 else _iter_http1_faults(spec, given), None)


def _iter_http1_faults(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    own = _USER_CODE if spec.runs_user_code else f"applies only to HTTP/2: {_describe(spec)}, use http2"
    if spec.engine is Engine.NGHTTP2:
        yield (
            "http2",
            f"false is not possible with the engine {spec.engine}, use one of {', '.join(HTTP1_ENGINES)}",
        )
    for field in FIELDS:
        if field.http2_only and field.key in given:
            yield field.key, own


def _iter_http2_faults(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    if spec.engine is not Engine.NGHTTP2:
        yield "http2", _USER_CODE if spec.runs_user_code else f"{_describe(spec)}, use {Engine.NGHTTP2}"
    if not spec.keepalive:
        yield "keepalive", "connections of HTTP/2 are kept; leave it out, or use HTTP/1.1"
    if spec.brings_servers:
        key = "http2" if "http2" in given else "engine"
        yield key, "Oku's own delay servers speak HTTP/1.1; give a URL, or use another engine"
    if fault := _find_header_fault(spec.headers):
        yield "header", fault
    for target in spec.targets:
        if fault := _find_header_fault(list_headers(spec, target)):
            yield "targets", f"{format_value(target.name)}: header: {fault}"


def _describe(spec: Spec) -> str:
    return f"the engine {spec.engine} speaks HTTP/1.1"


def _find_header_fault(headers: Iterable[Header]) -> str | None:
    for header in headers:
        name = header.name.lower()
        if name in _OF_CONNECTIONS or (name == "te" and header.value.lower() != "trailers"):
            return f"{format_value(header)} is of HTTP/1.1 and not allowed in HTTP/2; leave it out"
    return None
