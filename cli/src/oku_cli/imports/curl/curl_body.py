"""Reads the body that curl makes of its flags: data, or a form with its files."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple
from urllib.parse import quote_plus

from oku_cli.imports.curl.curl_flags import CurlFlag
from oku_core.errors import format_value
from oku_core.spec.values.request_content import BODY_TYPE, JSON_TYPE, FormPart, write_form

ReadFile = Callable[[str], str]

_FORM = "application/x-www-form-urlencoded"
_DATA = frozenset({"data", "data-ascii", "data-raw", "data-binary", "data-urlencode", "json"})
_PARTS = frozenset({"form", "form-string"})
_BOUNDARY = "oku-form-boundary"
_TYPES = {
    "gif": "image/gif", "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png",
    "svg": "image/svg+xml", "txt": "text/plain", "htm": "text/html", "html": "text/html",
    "pdf": "application/pdf", "xml": "application/xml",
}  # fmt: skip
"""The types that curl gives files by the ends of their names."""
_WORD = re.compile(r'("(?:[^"\\]|\\.)*+"|[^;]*+)(.*)', re.DOTALL)
_OPTION = re.compile(r'; *(type|filename)=("(?:[^"\\]|\\.)*+"|[^;"]*+)')
_ESCAPED = re.compile(r'\\([\\"])')


class CurlBody(NamedTuple):
    """A body; both are empty without one.

    Attributes:
        text: what is sent; None without a body.
        type: its content type.
    """

    text: str | None = None
    type: str = ""


def build_body(flags: Sequence[CurlFlag], read_file: ReadFile) -> CurlBody:
    """The body that the flags of a command make.

    Raises:
        ValueError: a spec cannot express it.
    """
    names = {flag.name for flag in flags}
    if not names & _PARTS:
        text = _join_data((flag for flag in flags if flag.name in _DATA), read_file)
        return CurlBody() if text is None else CurlBody(text, JSON_TYPE if "json" in names else _FORM)
    if others := names & (_DATA | {"get", "head"}):
        raise ValueError(f"-F: curl sends no form together with --{min(others)}")
    parts = [_read_part(flag, read_file) for flag in flags if flag.name in _PARTS]
    boundary = _BOUNDARY
    while any(boundary in str(part) for part in parts):
        boundary += "-"
    return CurlBody(write_form(parts, boundary).decode(), f"multipart/form-data; boundary={boundary}")


def encode_pair(value: str, read_file: ReadFile) -> str:
    """`content`, `=content`, `name=content`, `@file` or `name@file`, of which the content is encoded."""
    name, sign, content = value.partition("=")
    if not sign:
        name, at, file = value.partition("@")
        if not at:
            return quote_plus(value)
        content = read_file(file)
    return f"{name}={quote_plus(content)}" if name else quote_plus(content)


def _join_data(flags: Iterable[CurlFlag], read_file: ReadFile) -> str | None:
    parts: list[str] = []
    for flag in flags:
        part = _read_data(flag, read_file)
        # JSON is joined as it is, everything else as the fields of a form.
        if parts and flag.name == "json":
            parts[-1] += part
        else:
            parts.append(part)
    return "&".join(parts) if parts else None


def _read_data(flag: CurlFlag, read_file: ReadFile) -> str:
    if flag.name == "data-raw":
        return flag.value
    if flag.name == "data-urlencode":
        return encode_pair(flag.value, read_file)
    if not flag.value.startswith("@"):
        return flag.value
    content = read_file(flag.value[1:])
    keeps_lines = flag.name in ("data-binary", "json")
    return content if keeps_lines else content.replace("\r", "").replace("\n", "")


def _read_part(flag: CurlFlag, read_file: ReadFile) -> FormPart:
    """`name=content`, `name=<file` or `name=@file`, and `;type=…` and `;filename=…` behind them."""
    name, equals, value = flag.value.partition("=")
    if not equals:
        raise ValueError(f"-F: {format_value(flag.value)} is not of the form NAME=VALUE")
    if flag.name == "form-string":
        return FormPart(name, value)
    source = value[:1] if value[:1] in ("@", "<") else ""
    content, options = _split_options(value.removeprefix(source))
    if value.startswith("(") or flag.value == "=)" or (source and "," in content) or options is None:
        raise ValueError(f"-F: {format_value(flag.value)} is not one text or file with a type and a filename")
    file = content
    if source:
        content = read_file(file)
    shown = options.get("filename", PurePath(file).name if source == "@" else None)
    kind = options.get("type", "")
    if source == "@" and not kind:
        kind = _TYPES.get(file.rpartition(".")[2].lower(), BODY_TYPE)
    return FormPart(name, content, shown, kind)


def _split_options(value: str) -> tuple[str, dict[str, str] | None]:
    """The content and its attributes; None for those if any is neither type nor filename."""
    found = _WORD.fullmatch(value)
    assert found is not None  # its second half matches anything
    options = {each[1]: _unquote(each[2]) for each in _OPTION.finditer(found[2])}
    return _unquote(found[1]), None if _OPTION.sub("", found[2]) else options


def _unquote(text: str) -> str:
    return _ESCAPED.sub(r"\1", text[1:-1]) if text.startswith('"') else text.strip()
