"""What placeholders of a spec mean with its data, and whether its rows suffice.

A fault is the key that is to blame and what is wrong; the parser adds where that key was given.
"""

from collections.abc import Iterator
from typing import NamedTuple

from oku_core.errors import format_value
from oku_core.process.redaction import redact
from oku_core.spec.load_rules import Fault
from oku_core.spec.spec import OPEN_END, Spec
from oku_core.spec.values.header import Header
from oku_core.spec.values.placeholder import describe_unknown, list_names


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
