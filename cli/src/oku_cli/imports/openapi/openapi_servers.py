"""Chooses the server of each operation of an OpenAPI document."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from oku_cli.imports.imported_spec import name_some
from oku_cli.imports.openapi.openapi_references import References
from oku_core.errors import format_value

_VARIABLE = re.compile(r"(\{[^{}]*\})")
_LONGEST_URL = 1 << 16


class Servers:
    """The servers of a document.

    Args:
        references: of the document.
        document: all of it.
        base_url: where to send to instead; None for the first server of the document.

    Attributes:
        base: the start of URLs, without a slash at its end.
        notes: what a reader of the spec has to know.

    Raises:
        ValueError: there is no server to send to.
    """

    def __init__(self, references: References, document: Mapping[str, Any], base_url: str | None) -> None:
        self._resolve = references.resolve
        self._base_url = base_url
        self.notes: list[str] = []
        urls = self._list_urls(document)
        first = self._first = urls[0] if urls else ""
        if base_url is not None:
            self.base = _append(base_url, first)
            if self.base != base_url.rstrip("/"):
                self.notes.append(f"The path of the server in the document, {first}, follows the base URL.")
        elif not urlsplit(first).netloc:
            said = first or "missing"
            raise ValueError(f"its first server is {said}; say where to send to by --base-url URL")
        else:
            self.base = _check_base(first).rstrip("/")
            if others := urls[1:]:
                self.notes.append(f"The document has other servers, for --base-url: {name_some(others)}.")

    def choose(self, item: Mapping[str, Any], operation: Mapping[str, Any], notes: list[str]) -> str:
        """The start of the URL of an operation; its own server takes precedence over its path's.

        Args:
            item: the path of the operation.
            operation: as the document has it.
            notes: gets the differences from the document.
        """
        urls = self._list_urls(operation) or self._list_urls(item)
        if not urls:
            return self.base
        own = urls[0].rstrip("/")
        is_whole = bool(urlsplit(own).netloc)
        if self._base_url is not None and is_whole:
            notes.append(f"has its own server, {own}; the base URL replaces it")
            return self.base
        if self._base_url is not None:
            return _append(_cut_path(self._base_url, urlsplit(self._first).path), own)
        if is_whole:
            return _check_base(own)
        notes.append(f"has its own server, {own or '/'}, which is taken to be beside the first one")
        return urljoin(self.base, _check_base(own)).rstrip("/")

    def _list_urls(self, holder: Mapping[str, Any]) -> list[str]:
        """The URLs of the servers of a part, with the defaults of their variables."""
        return [self._fill(self._resolve(server)) for server in holder.get("servers") or ()]

    def _fill(self, server: Mapping[str, Any]) -> str:
        variables = (server.get("variables") or {}).items()
        defaults = {str(name): str(self._resolve(each).get("default", "")) for name, each in variables}
        url = fill(str(server.get("url", "")), defaults)
        return f"https:{url}" if url.startswith("//") else url


def fill(url: str, values: Mapping[str, str]) -> str:
    """A URL with values in the places of variables.

    Raises:
        ValueError: it gets too long.
    """
    parts: list[str] = []
    size = 0
    for place, part in enumerate(_VARIABLE.split(url)):
        is_variable = place % 2 == 1
        parts.append(values.get(part[1:-1], part) if is_variable else part)
        size += len(parts[-1])
        if size > _LONGEST_URL:
            with_value = f" with its {format_value(part[1:-1])}" if is_variable else ""
            raise ValueError(f"a URL{with_value} is longer than {_LONGEST_URL >> 10} KiB")
    return "".join(parts)


def _check_base(url: str) -> str:
    """A URL that paths can follow, as it is."""
    if "?" in url or "#" in url:
        raise ValueError(f"the server {format_value(url)} has a query or a fragment: leave it out")
    return url


def _append(base_url: str, server: str) -> str:
    """A base URL with the path of a server behind it, unless that is whole or there already."""
    base = _check_base(base_url).rstrip("/")
    path = "" if urlsplit(server).netloc else _check_base(server).strip("/").removeprefix("./")
    return base if not path or _cut_path(base, path) != base else f"{base}/{path}"


def _cut_path(base_url: str, path: str) -> str:
    """A base URL without a path at its end, if it has that."""
    base, end = base_url.rstrip("/"), f"/{path.removeprefix('./').strip('/')}"
    return base.removesuffix(end) if urlsplit(base).path.endswith(end) else base
