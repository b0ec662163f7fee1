"""Finds keys of a spec that contradict each other: about data, HTTP/2, patterns, thresholds and user code.

Rules about the load are in `load`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from oku_core.accounting.measured_time import Time
from oku_core.errors import format_value
from oku_core.process.redaction import redact
from oku_core.spec.fields import FIELDS
from oku_core.spec.load import Fault, list_phase_times
from oku_core.spec.request_template import list_headers
from oku_core.spec.spec import HTTP1_ENGINES, OPEN_END, Engine, Spec
from oku_core.spec.values.pattern import MOST_PATTERNS, PatternError, compile_pattern
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.template import INDEX_PLACEHOLDER, describe_unknown, list_names
from oku_core.spec.values.threshold import FigureUnit, Threshold


class _Text(NamedTuple):
    """A text of a spec that may have placeholders; `key` is that of the whole spec, `place` is within it."""

    key: str
    place: str
    text: str
    is_url: bool = False


def find_data_fault(spec: Spec) -> Fault | None:
    """Say which key has a placeholder that stands for nothing; None if none does."""
    if spec.runs_user_code:
        return None  # it reads rows by itself
    columns = spec.data.columns if spec.data is not None else ()
    for text in _iter_texts(spec):
        if spec.data is None and not text.is_url:
            continue  # braces in headers and bodies are text
        unknown = next((name for name in list_names(text.text) if name not in columns), None)
        if unknown is not None:
            placeholder = f"{{{unknown}}}"
            shown = format_value(redact(text.text, queries=False))
            if spec.data is None:
                return text.key, text.place + describe_unknown(shown, placeholder)
            return text.key, f"{text.place}{placeholder} is not a column of {spec.data.describe_columns()}"
    return _find_length_fault(spec) if columns else None


def find_rows_fault(spec: Spec) -> Fault | None:
    """Say that a spec, whose load is complete, has more requests than rows; None if it has not."""
    data = spec.data
    if data is None or data.repeat or spec.requests <= data.rows or spec.requests == OPEN_END:
        return None
    rows = "1 row" if data.rows == 1 else f"{data.rows} rows"
    return "data", (
        f"{data.name} has {rows}, fewer than the {spec.requests} {spec.counted} of this run; "
        f"{data.name}:repeat starts over after the last row"
    )


def _iter_texts(spec: Spec) -> Iterator[_Text]:
    yield from (_Text("url", "", url, is_url=True) for url in spec.urls)
    yield from (_Text("header", f"{header.name}: ", header.value) for header in spec.headers)
    if spec.body is not None:
        yield _Text("body", "", spec.body)
    for target in spec.targets:
        place = f"{format_value(target.name)}: "
        yield _Text("targets", f"{place}url: ", target.url, is_url=True)
        yield from (_Text("targets", f"{place}header: {head.name}: ", head.value) for head in target.headers)
        if target.body is not None:
            yield _Text("targets", f"{place}{'json' if target.is_json else 'body'}: ", target.body)


def _find_length_fault(spec: Spec) -> Fault | None:
    """A length that is given cannot be that of a body that differs from row to row."""
    reason = "the length of a body with columns in it varies; leave the header out, Oku sends it"
    if _has_length(spec.headers) and spec.body is not None and list_names(spec.body):
        return "header", f"Content-Length: {reason}"
    for target in spec.targets:
        if _has_length((*spec.headers, *target.headers)) and list_names(target.body or ""):
            return "targets", f"{format_value(target.name)}: header: Content-Length: {reason}"
    return None


def _has_length(headers: tuple[Header, ...]) -> bool:
    return any(header.is_named("content-length") for header in headers)


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


def find_pattern_fault(spec: Spec) -> Fault | None:
    """Say which key has a pattern that RE2 does not support, or one too many; None if none has.

    Compiling takes up to 0.1 s for each pattern: do not call this in an event loop.
    """
    patterns: set[str] = set()
    for key, place, pattern in _iter_patterns(spec):
        patterns.add(pattern)
        if len(patterns) > MOST_PATTERNS:
            return key, f"{place}a spec has at most {MOST_PATTERNS} different regular expressions"
    for key, place, pattern in _iter_patterns(spec):
        try:
            compile_pattern(pattern)
        except PatternError as error:
            return key, f"{place}{error}"
    return None


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


def find_threshold_fault(spec: Spec, targets: Collection[str]) -> str | None:
    """Say what is wrong with a threshold of a spec; None if nothing is.

    Args:
        spec: the spec.
        targets: the names of its targets; empty if it has one without a name.
    """
    for threshold in spec.thresholds:
        for fault in _iter_faults(threshold, spec, targets):
            return f"{format_value(str(threshold))}: {fault}"
    return None


def _iter_faults(threshold: Threshold, spec: Spec, targets: Collection[str]) -> Iterator[str]:
    if threshold.target is not None and threshold.target not in targets and not spec.runs_user_code:
        known = f"it has {', '.join(targets)}" if targets else "it has one, without a name"
        yield f"the run has no target {format_value(threshold.target)}; {known}"
    phases = [phase.name for phase in list_phase_times(spec)]
    if threshold.phase is not None and (not threshold.phase or threshold.phase not in phases):
        known = f"it has {', '.join(phases)}" if phases != [""] else "it has only one, without a name"
        yield f"the run has no phase {format_value(threshold.phase)}; {known}"
    if spec.runs_user_code and threshold.target is not None and threshold.time is not Time.LATENCY:
        yield f"the requests that user code makes have no {threshold.time.label}"
    if spec.is_open:
        return
    if threshold.time is not Time.LATENCY:
        yield f"only the requests of a run with a rate have a {threshold.time.label}"
    if threshold.unit is FigureUnit.OF_PLAN:
        yield "only a run with a rate has a plan"


REQUEST_KEYS = (
    "url", "method", "body", "targets", "expect-status", "expect-body", "expect-match", "expect-json",
    "expect-header", "expect-size", "expect-within", "max-redirects", "cookies", "servers", "delay",
)  # fmt: skip
"""Keys of the requests that a spec describes: user code makes its own."""
_ONLY_USER_CODE = (
    "scenario", "include", "hooks", "users", "iterations", "iteration-timeout", "user-classes", "tags",
    "exclude-tags",
)  # fmt: skip
_ONLY_LOCUST = ("user-classes", "tags", "exclude-tags")


def find_user_code_fault(spec: Spec, given: Collection[str]) -> Fault | None:
    """Say which key does not go with the engine of a spec; None if all do.

    Args:
        spec: the spec.
        given: the keys that the user gave.
    """
    if not spec.runs_user_code:
        return _find_missing_engine(spec, given)
    if spec.scenario is None:
        return "engine", f"the engine {spec.engine} runs user code, but scenario is not given"
    for key in REQUEST_KEYS:
        if key in given:
            other = (
                "; base-url, on the command line --host, is what comes before their URLs"
                if key == "url"
                else ""
            )
            return key, f"cannot be combined with user code, which makes its own requests{other}"
    if fault := _find_path_fault([spec.scenario.path, *(file.path for file in spec.include)]):
        return "include", fault
    if spec.engine is Engine.LOCUST:
        return _find_locust_fault(spec, given)
    only_locust = next((key for key in _ONLY_LOCUST if key in given), None)
    return None if only_locust is None else (only_locust, "applies only to locustfiles")


def _find_path_fault(paths: Sequence[str]) -> str | None:
    """Say which file would take the place of another one, or stand below it; None if none does."""
    places = set(paths)
    if len(places) != len(paths):
        return f"{format_value(paths[0])} is the path of the scenario"
    for path in paths:
        if over := places.intersection(map(str, PurePosixPath(path).parents)):
            return f"{format_value(path)} cannot stand below {format_value(min(over))}, which is a file"
    return None


def _find_locust_fault(spec: Spec, given: Collection[str]) -> Fault | None:
    if spec.hooks:
        return "hooks", "a locustfile has events instead: test_start and test_stop"
    if "keepalive" in given and not spec.keepalive:
        return "keepalive", "the clients of a locustfile keep connections; let it send Connection: close"
    columns = set() if spec.data is None else set(spec.data.columns)
    for header in spec.headers:
        if INDEX_PLACEHOLDER in header.value or columns & set(list_names(header.value)):
            return "header", f"{format_value(header)} differs between requests; let the locustfile send it"
    return None


def _find_missing_engine(spec: Spec, given: Collection[str]) -> Fault | None:
    if spec.scenario is not None:
        return "scenario", f"the engine {spec.engine} runs no user code, use python or locust"
    for key in _ONLY_USER_CODE:
        if key in given:
            return key, "applies only to user code: a scenario or a locustfile"
    return None
