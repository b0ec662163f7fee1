"""Reads the body of a request in a HAR file: a text, or the fields of a form."""

import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from oku_core.spec.values.request_content import FormPart, write_form

_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_BOUNDARY = re.compile(r"boundary=(\"[^\"]*\"|[^\s;\"]+)", re.IGNORECASE)


@dataclass(frozen=True)
class PostedBody:
    """A body.

    Attributes:
        body: the content to send; None for nothing.
        type: its content type; empty if unknown.
        notes: the missing parts.
    """

    body: str | None = None
    type: str = ""
    notes: Sequence[str] = ()


def read_posted(posted: Any, kind: str) -> PostedBody:
    """Read `postData`: programs write `text` or `params` (HAR 1.2), browsers mostly both.

    Args:
        posted: as the file has it.
        kind: the content type that the headers have; empty if they have none.
    """
    if not isinstance(posted, Mapping):
        return PostedBody()
    kind = kind or str(posted.get("mimeType") or "")
    text, params = posted.get("text"), posted.get("params")
    if isinstance(text, str) and text:
        return _read_text(text, kind, is_base64=posted.get("encoding") == "base64")
    if not isinstance(params, list) or not params:
        return PostedBody()
    fields = [each for each in params if isinstance(each, Mapping) and "name" in each]
    if kind.lower().startswith(_MULTIPART):
        return _build_multipart(fields, kind)
    pairs = [(str(each["name"]), read_value(each)) for each in fields]
    return PostedBody(urlencode(pairs), kind or _FORM)


def _read_text(text: str, kind: str, *, is_base64: bool) -> PostedBody:
    if not is_base64:
        return PostedBody(text, kind)
    try:
        return PostedBody(b64decode(text).decode(), kind)
    except ValueError:
        return PostedBody(notes=["its body is not text in UTF-8 and left out: give the file of it as @FILE"])


def _build_multipart(fields: Sequence[Mapping[str, Any]], kind: str) -> PostedBody:
    """The parts of a form with files (RFC 7578), with the boundary that the recorded header names."""
    found = _BOUNDARY.search(kind)
    boundary = found[1].strip('"') if found else "oku-form-boundary"
    parts, notes = [], []
    for each in fields:
        filename = str(each["fileName"]) if each.get("fileName") else None
        if filename and not each.get("value"):
            notes.append(f"the file {filename} is not in the recording: an empty one is sent")
        part_type = " ".join(str(each.get("contentType") or "").split())
        parts.append(FormPart(str(each["name"]), read_value(each), filename, part_type))
    body = write_form(parts, boundary).decode()
    return PostedBody(body, kind if found else f"{_MULTIPART}; boundary={boundary}", notes)


def read_value(pair: Mapping[str, Any]) -> str:
    """The value of a pair as text: some programs write null for none, or a number."""
    value = pair.get("value")
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)
