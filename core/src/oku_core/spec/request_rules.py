"""Finds faults in the requests that a spec describes: in their targets, protocol, framing and checks.

`rules` defines a fault.
"""

from collections.abc import Collection, Iterable, Iterator

from oku_core.errors import format_value
from oku_core.spec.fields import FIELDS, NO_HTTP2_SERVERS
from oku_core.spec.load import Fault
from oku_core.spec.request_template import list_headers
from oku_core.spec.spec import HTTP1_ENGINES, Engine, Spec
from oku_core.spec.target import Target, find_body_check
from oku_core.spec.values.file_reference import FindFile, find_file_reference
from oku_core.spec.values.pattern import MOST_PATTERNS, PatternError, compile_pattern
from oku_core.spec.values.quantity import format_bytes
from oku_core.spec.values.request_content import Header, asks_to_close, find_framing_fault
from oku_core.spec.values.template import INDEX_PLACEHOLDER, NAMED_PLACEHOLDER, measure_body, read_body
from oku_core.spec.values.url import is_absolute

_OF_CONNECTIONS = frozenset({"connection", "proxy-connection", "keep-alive"})
"""Headers that HTTP/2 has frames for in their place (RFC 9113, section 8.2.2)."""


def iter_request_faults(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    """Yield the faults of requests; each assumes that there is none before it."""
    yield from _iter_target_faults(spec, given)
    if not spec.brings_servers:
        reason = "applies only to Oku's own delay servers and cannot be combined with a URL"
        yield from ((field.key, reason) for field in FIELDS if field.own_servers_only and field.key in given)
    yield from _iter_http2_faults(spec, given)
    if "key" in given and "cert" not in given:
        yield "key", "is the key of a certificate, but cert is not given"
    yield from _iter_framing_faults(spec)
    yield from _iter_head_faults(spec)
    yield from _iter_pattern_faults(spec)


def _iter_target_faults(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    """Targets take the place of the short form of one, and either all need a base URL or none does."""
    if "targets" not in given:
        if "base-url" in given and not spec.runs_user_code:
            yield "base-url", "is what comes before the URLs of targets, but targets are not given"
        return
    for key in ("url", "method", "body"):
        if key in given:
            yield key, "cannot be combined with targets; each target has its own"
    relative = [target for target in spec.targets if not is_absolute(target.url)]
    if relative and spec.base_url is None and not spec.brings_servers:
        yield _blame(relative[0], "url: begins with a path, but base-url is not given")


def _blame(target: Target, reason: str) -> Fault:
    return "targets", f"{format_value(target.name)}: {reason}"


def _iter_http2_faults(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    if not spec.http2:
        if spec.engine is Engine.NGHTTP2:
            engines = ", ".join(HTTP1_ENGINES)
            yield "http2", f"false is not possible with the engine {spec.engine}, use one of {engines}"
        return
    if spec.brings_servers:
        key = "http2" if "http2" in given else "engine"
        yield key, NO_HTTP2_SERVERS
    if fault := _find_header_fault(spec.headers):
        yield "header", fault
    for target in spec.targets:
        if fault := _find_header_fault(list_headers(spec, target)):
            yield _blame(target, f"header: {fault}")


def _find_header_fault(headers: Iterable[Header]) -> str | None:
    for header in headers:
        name = header.name.lower()
        if name in _OF_CONNECTIONS or (name == "te" and header.value.lower() != "trailers"):
            return f"{format_value(header)} is of HTTP/1.1 and not allowed in HTTP/2; leave it out"
    return None


def _iter_framing_faults(spec: Spec) -> Iterator[Fault]:
    contradiction = "the header Connection contradicts keepalive"
    if not spec.keepalive and not asks_to_close(spec.headers):
        yield "header", contradiction
    if fault := find_framing_fault(spec.headers, spec.body):
        yield "header", fault
    for target in spec.targets:
        headers = list_headers(spec, target)
        if not spec.keepalive and not asks_to_close(headers):
            yield _blame(target, f"header: {contradiction}")
        if fault := find_framing_fault(headers, target.body):
            yield _blame(target, f"header: {fault}")


def _iter_head_faults(spec: Spec) -> Iterator[Fault]:
    """An answer to HEAD has no body, so that no check of one could ever pass."""
    if spec.method == "HEAD" and (key := find_body_check(spec.expectation)):
        yield f"expect-{key}", "cannot be combined with HEAD, whose answers have no body"
    for target in spec.targets:
        if target.method == "HEAD" and (key := find_body_check(target.expect.complete(spec.expectation))):
            where = f"expect: {key}" if getattr(target.expect, key) else f"expect-{key}"
            yield _blame(target, f"method: HEAD cannot be combined with {where}: its answers have no body")


def _iter_pattern_faults(spec: Spec) -> Iterator[Fault]:
    """Compile the patterns, which takes up to 0.1 s for each: do not call this in an event loop."""
    patterns: set[str] = set()
    for key, place, pattern in _iter_patterns(spec):
        patterns.add(pattern)
        if len(patterns) > MOST_PATTERNS:
            yield key, f"{place}a spec has at most {MOST_PATTERNS} different regular expressions"
    for key, place, pattern in _iter_patterns(spec):
        try:
            compile_pattern(pattern)
        except PatternError as error:
            yield key, f"{place}{error}"


def compile_patterns(spec: Spec) -> None:
    """Compile all patterns of a spec into the cache, so that an event loop finds them there.

    Raises:
        PatternError: RE2 does not support one.
    """
    for _, _, pattern in _iter_patterns(spec):
        compile_pattern(pattern)


def has_patterns(spec: Spec) -> bool:
    """Whether a spec has any pattern."""
    return next(_iter_patterns(spec), None) is not None


def _iter_patterns(spec: Spec) -> Iterator[tuple[str, str, str]]:
    """Each pattern with its key in the spec, and with its place under that."""
    yield from (("expect-match", "", pattern) for pattern in spec.expect_match)
    for target in spec.targets:
        place = f"{format_value(target.name)}: expect: match: "
        yield from (("targets", place, pattern) for pattern in target.expect.match)


def find_memory_fault(spec: Spec, in_flight: int, limit_bytes: int, find_file: FindFile) -> str:
    """Explain that bodies take more memory than a worker may use; empty if they do not. This may block.

    A body that all requests share is in memory once. One with a placeholder is made for each request, and
    stays in memory until the answer has come; values of columns are not counted, because a worker reads them
    row by row. Each of several targets has its share of the requests in flight.

    Args:
        spec: describes the requests.
        in_flight: how many requests a worker has in flight at most.
        limit_bytes: the memory that a worker may use; 0 if it is not known.
        find_file: finds bodies that are files.
    """
    bodies = [(target.body, target.weight) for target in spec.targets] or [(spec.body, 1)]
    written = [(body, weight) for body, weight in bodies if body is not None]
    whole = sum(weight for _, weight in bodies)
    if not limit_bytes or _weigh(written) * in_flight <= limit_bytes * whole:
        return ""
    own = [(body, weight) for body, weight in written if _differs(body, spec, find_file)]
    total_bytes = _weigh(own) * in_flight // whole
    if total_bytes <= limit_bytes:
        return ""
    return (
        f"body: each request has its own body, and {in_flight:,} in flight in one worker take"
        f" {format_bytes(total_bytes)} of memory, but it may use {format_bytes(limit_bytes)}:"
        " lower the concurrency, or send the same body with all requests"
    )


def _weigh(bodies: list[tuple[str, int]]) -> int:
    """The sum of the sizes of bodies, each multiplied by its weight."""
    return sum(_measure(body) * weight for body, weight in bodies)


def _measure(body: str) -> int:
    reference = find_file_reference(body)
    return measure_body(body) if reference is None else reference.size


def _differs(body: str, spec: Spec, find_file: FindFile) -> bool:
    """Whether a body has a placeholder for the index or a column."""
    if (reference := find_file_reference(body)) is not None:
        body = read_body(find_file(reference.digest).read_bytes())
    if INDEX_PLACEHOLDER in body or not spec.columns:
        return INDEX_PLACEHOLDER in body
    return any(found[1] in spec.columns for found in NAMED_PLACEHOLDER.finditer(body))
