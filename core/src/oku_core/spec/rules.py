"""Finds keys of a spec that contradict each other; here those about user code, thresholds and data.

A fault is the key to blame and the reason; the parser adds where that key was given. Rules of the load are in
`load`, rules of requests in `request_rules`.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from oku_core.accounting.measured_time import Time
from oku_core.errors import format_value
from oku_core.process.redaction import redact
from oku_core.spec.engine_choice import iter_engine_faults
from oku_core.spec.fields import FIELDS
from oku_core.spec.load import Fault, iter_load_faults, list_phase_times
from oku_core.spec.request_rules import iter_request_faults
from oku_core.spec.spec import OPEN_END, Engine, Spec
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.template import INDEX_PLACEHOLDER, describe_unknown, list_names
from oku_core.spec.values.threshold import FigureUnit, Threshold


def iter_faults(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    """Yield the faults of a spec whose load is not yet complete; each assumes that none is before it.

    To find them can take a second: do not do this in an event loop.

    Args:
        spec: the spec.
        given: the keys that the user gave, and the other names under which they were given.
    """
    yield from _iter_user_code_faults(spec)
    yield from iter_engine_faults(spec, given)
    if not spec.is_open:
        reason = "applies only to runs with a rate"
        yield from ((field.key, reason) for field in FIELDS if field.rate_only and field.key in given)
    yield from iter_load_faults(spec, given)
    yield from iter_request_faults(spec, given)
    yield from _iter_threshold_faults(spec)
    if not spec.runs_user_code:  # it reads rows by itself
        yield from _iter_data_faults(spec)


class _Text(NamedTuple):
    """A text of a spec that may have placeholders; `key` belongs to the whole spec, `place` is within it."""

    key: str
    place: str
    text: str
    is_url: bool = False


def _iter_data_faults(spec: Spec) -> Iterator[Fault]:
    """Which keys have a placeholder that stands for nothing."""
    for text in _iter_texts(spec):
        if spec.data is None and not text.is_url:
            continue  # braces in headers and bodies are text
        for unknown in (name for name in list_names(text.text) if name not in _list_known(spec, text)):
            placeholder = f"{{{unknown}}}"
            if unknown in spec.columns:
                yield text.key, f"{text.place}{placeholder} is a whole row, which only a body can have"
            elif spec.data is None:
                shown = format_value(redact(text.text, queries=False))
                yield text.key, text.place + describe_unknown(shown, placeholder)
            else:
                columns = spec.data.describe_columns()
                yield text.key, f"{text.place}{placeholder} is not a column of {columns}"
    if spec.columns:
        yield from _iter_length_faults(spec)


def _list_known(spec: Spec, text: _Text) -> Collection[str]:
    """What placeholders of a text stand for."""
    is_body = text.key == "body" or text.place.endswith("body: ")
    return spec.columns if is_body or spec.data is None else spec.data.columns


def iter_row_faults(spec: Spec) -> Iterator[Fault]:
    """Yield that a spec, whose load is complete, has more requests than rows."""
    data = spec.data
    if data is not None and not data.repeat and data.rows < spec.requests != OPEN_END:
        rows = "1 row" if data.rows == 1 else f"{data.rows} rows"
        yield (
            "data",
            (
                f"{data.name} has {rows}, fewer than the {spec.requests} {spec.counted} of this run; "
                f"{data.name}:repeat starts over after the last row"
            ),
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


def _iter_length_faults(spec: Spec) -> Iterator[Fault]:
    """A given length cannot fit a body that differs from row to row."""
    reason = "the length of a body with columns in it varies; leave the header out, Oku sends it"
    if _has_length(spec.headers) and spec.body is not None and list_names(spec.body):
        yield "header", f"Content-Length: {reason}"
    for target in spec.targets:
        if _has_length((*spec.headers, *target.headers)) and list_names(target.body or ""):
            yield "targets", f"{format_value(target.name)}: header: Content-Length: {reason}"


def _has_length(headers: tuple[Header, ...]) -> bool:
    return any(header.is_named("content-length") for header in headers)


def _iter_threshold_faults(spec: Spec) -> Iterator[Fault]:
    targets = [target.name for target in spec.targets]
    for threshold in spec.thresholds:
        for fault in _list_faults(threshold, spec, targets):
            yield "thresholds", f"{format_value(str(threshold))}: {fault}"


def _list_faults(threshold: Threshold, spec: Spec, targets: Collection[str]) -> Iterator[str]:
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


def _iter_user_code_faults(spec: Spec) -> Iterator[Fault]:
    if not spec.runs_user_code:
        return
    if spec.scenario is None:
        yield "engine", f"the engine {spec.engine} runs user code, but scenario is not given"
    elif fault := _find_path_fault([spec.scenario.path, *(file.path for file in spec.include)]):
        yield "include", fault
    elif spec.engine is Engine.LOCUST:
        yield from _iter_locust_faults(spec)


def _find_path_fault(paths: Sequence[str]) -> str | None:
    """Find a file that would replace another one, or be placed below it; None if there is none."""
    places = set(paths)
    if len(places) != len(paths):
        return f"{format_value(paths[0])} is the path of the scenario"
    for path in paths:
        if over := places.intersection(map(str, PurePosixPath(path).parents)):
            return f"{format_value(path)} cannot stand below {format_value(min(over))}, which is a file"
    return None


def _iter_locust_faults(spec: Spec) -> Iterator[Fault]:
    for header in spec.headers:
        if INDEX_PLACEHOLDER in header.value or set(spec.columns) & set(list_names(header.value)):
            yield "header", f"{format_value(header)} differs between requests; let the locustfile send it"
