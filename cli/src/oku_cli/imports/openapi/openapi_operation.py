"""Makes the request of one operation of an OpenAPI document."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from oku_cli.imports.imported_spec import ImportedRequest, NeededCredential
from oku_cli.imports.openapi.openapi_parameters import (
    list_fields,
    write_cookies,
    write_header,
    write_path,
    write_query,
)
from oku_cli.imports.openapi.openapi_references import ENTRIES_OF_PART, References
from oku_cli.imports.openapi.openapi_servers import fill
from oku_cli.imports.openapi.schema_example import ExampleMaker

_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_ANY_TYPE = frozenset({"*/*", "application/*"})
_STYLES = frozenset({"style", "explode", "allowReserved"})
"""The keywords of an encoding object that define how a form field is written (OpenAPI 3)."""
_OWN_HEADERS = frozenset({"accept", "content-type", "authorization"})
"""Parameters of these names are passed over (OpenAPI 3, parameter object)."""


@dataclass(frozen=True)
class Operation:
    """An operation of a document.

    Attributes:
        path: with its variables.
        method: in lower case.
        item: the path item of the document.
        content: the operation object of the document.
    """

    path: str
    method: str
    item: Mapping[str, Any]
    content: Mapping[str, Any]

    def name(self, path: str) -> str:
        """Its id, else its method and this path."""
        return str(self.content.get("operationId") or f"{self.method.upper()} {path}")


class OperationReader:
    """Reads the operations of a document.

    Args:
        references: of the document.
        document: all of it.
    """

    def __init__(self, references: References, document: Mapping[str, Any]) -> None:
        self._resolve = references.resolve
        self._count = references.count
        self._document = document

    def build_request(self, operation: Operation, base: str, notes: Sequence[str]) -> ImportedRequest:
        """Make the request.

        Args:
            operation: to be requested.
            base: the start of its URL.
            notes: the known differences from the document.
        """
        maker = ExampleMaker(self._resolve)
        maker.notes += notes
        places: dict[str, str] = {}
        query: list[str] = []
        headers: list[tuple[str, str]] = []
        cookies: list[str] = []
        for parameter in self._list_parameters(operation):
            name, place = str(parameter.get("name")), parameter.get("in")
            if place != "path" and not parameter.get("required") and self._find(parameter, maker) is None:
                continue
            value = self._make_parameter(parameter, maker)
            if place == "path":
                places[name] = write_path(name, value, parameter)
            elif place == "query":
                query += write_query(name, value, parameter)
            elif place == "header" and name.lower() not in _OWN_HEADERS:
                headers.append((name, write_header(value, parameter)))
            elif place == "cookie":
                cookies.append(write_cookies(name, value, parameter))
        if cookies:
            headers.append(("Cookie", "; ".join(cookies)))
        path = fill(operation.path, places)
        if "{" in path:
            maker.notes.append(f"{path} has a variable that is no parameter: put a value in its place")
        body, kind = self._make_body(operation.content, maker)
        credentials = list(self._list_credentials(operation.content, maker.notes))
        self._count(maker.made * ENTRIES_OF_PART)
        return ImportedRequest(
            url=f"{base}{path}{'?' if query else ''}{'&'.join(query)}",
            method=operation.method.upper(),
            headers=[*headers, *([("Content-Type", kind)] if kind else [])],
            body=body,
            credentials=credentials,
            name=operation.name(path),
            statuses=_find_statuses(operation.content),
            notes=list(dict.fromkeys(maker.notes)),
        )

    def _list_parameters(self, operation: Operation) -> Sequence[Mapping[str, Any]]:
        """The parameters of an operation, and parameters of its path that it does not override."""
        holders = (operation.item, operation.content)
        found = [self._resolve(each) for holder in holders for each in holder.get("parameters") or ()]
        return list({(each.get("name"), each.get("in")): each for each in found}.values())

    def _find(self, parameter: Mapping[str, Any], maker: ExampleMaker) -> Any:
        """The value that the document gives for a parameter; None if it gives none."""
        _, media = self._find_media(parameter)
        holders = (parameter, media, self._resolve(parameter.get("schema") or media.get("schema")))
        return next((given for each in holders if (given := maker.find(each)) is not None), None)

    def _find_media(self, parameter: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """The type and the description of a parameter that is a whole document, such as JSON."""
        contents = parameter.get("content") or {}
        return next(((str(kind), self._resolve(media)) for kind, media in contents.items()), ("", {}))

    def _make_parameter(self, parameter: Mapping[str, Any], maker: ExampleMaker) -> Any:
        name = str(parameter.get("name"))
        kind, media = self._find_media(parameter)
        schema = parameter.get("schema") or media.get("schema")
        given = self._find(parameter, maker)
        if given is None:
            if parameter.get("in") == "path":
                maker.notes.append(f"{name} is made up: put one that exists, or {{i}}, in its place")
            given = maker.make(schema, name)
        else:
            given = maker.use_given(given, name, schema)
        return json.dumps(given, ensure_ascii=False, separators=(",", ":")) if _is_json(kind) else given

    def _make_body(self, operation: Mapping[str, Any], maker: ExampleMaker) -> tuple[str | None, str]:
        """The body and its type; None if there is none, or none that can be made."""
        described = self._resolve(operation.get("requestBody"))
        contents = described.get("content") or {}
        for kind, media in contents.items():
            if _is_json(str(kind)) or kind in _ANY_TYPE:
                body = json.dumps(self._make_content(media, maker), ensure_ascii=False)
                return body, _JSON if kind in _ANY_TYPE else str(kind)
        if _FORM in contents:
            form = self._make_form(contents[_FORM], maker)
            return (form, _FORM) if form or described.get("required") else (None, "")
        for kind, media in contents.items():
            given = maker.find(self._resolve(media))
            if isinstance(given, str):
                return given, str(kind)
        if contents:
            maker.notes.append(f"has no body: none can be made of the type {', '.join(contents)}")
        return None, ""

    def _make_form(self, media: Any, maker: ExampleMaker) -> str:
        """Write the fields of a form: one with an encoding of its own like a query parameter."""
        fields, encodings = self._make_content(media, maker), self._resolve(media).get("encoding") or {}
        pairs: list[str] = []
        for name, value in fields.items() if isinstance(fields, Mapping) else ():
            encoding = self._resolve(encodings.get(name))
            if encoding.keys() & _STYLES:
                pairs += write_query(name, value, encoding)
            else:
                pairs.append(urlencode(list_fields(name, value)))
        return "&".join(filter(None, pairs))

    def _make_content(self, media: Any, maker: ExampleMaker) -> Any:
        media = self._resolve(media)
        given, schema = maker.find(media), media.get("schema")
        return maker.make(schema, "") if given is None else maker.use_given(given, "its body", schema)

    def _list_credentials(self, operation: Mapping[str, Any], notes: list[str]) -> Iterator[NeededCredential]:
        """What the first way to prove who asks needs; what Oku cannot send goes into the notes."""
        ways = operation.get("security", self._document.get("security")) or [{}]
        schemes = self._resolve(self._document.get("components")).get("securitySchemes") or {}
        for name in map(str, ways[0]):
            scheme = self._resolve(schemes.get(name))
            word = str(scheme.get("scheme")).lower()
            match scheme.get("type"), scheme.get("in"):
                case "apiKey", "query":
                    yield NeededCredential("", str(scheme.get("name")), name)
                case "apiKey", "header":
                    yield NeededCredential(str(scheme.get("name")), "", name)
                case "apiKey", "cookie":
                    yield NeededCredential("Cookie", f"{scheme.get('name')}=", name)
                case "http", _ if word in ("basic", "bearer"):
                    if word == "basic":
                        notes.append(
                            f"needs the credentials {name}; their variable holds base64 of user:password"
                        )
                    yield NeededCredential("Authorization", f"{word.title()} ", name)
                case (("oauth2" | "openIdConnect"), _):
                    yield NeededCredential("Authorization", "Bearer ", name)
                case "mutualTLS", _:
                    notes.append(f"needs a client certificate ({name}): give --cert and --key")
                case _:
                    kind = scheme.get("scheme") or scheme.get("type") or "unknown"
                    notes.append(f"needs the credentials {name} ({kind}), which Oku cannot send")


def _is_json(kind: str) -> bool:
    plain = kind.partition(";")[0].strip().lower()
    return plain == _JSON or plain.endswith("+json")


def _find_statuses(operation: Mapping[str, Any]) -> list[int]:
    """The first status of success; none if that is 200, or is not given."""
    for status in operation.get("responses") or ():
        text = str(status)
        if len(text) == 3 and text.startswith("2") and text.isascii() and text.isdigit():
            return [] if text == "200" else [int(text)]
    return []
