"""Reads an OpenAPI document (3.0, 3.1): one request for each operation, with values that fit its schemas."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from oku_cli.imports.imported_spec import ImportedRequest, ImportedSpec, NeededCredential
from oku_cli.imports.schema_example import ExampleMaker, find_given
from oku_cli.yaml_reader import YamlKind, decode_yaml_or_json
from oku_core.digits import parse_digits
from oku_core.errors import format_value
from oku_core.json_reader import DEEPEST, JsonError, JsonLimitError, decode_json

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_FORM = "application/x-www-form-urlencoded"
_DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}
_MOST_REFERENCES = 20
_NUMBER_BEGINS = tuple("-0123456789")
_VARIABLE = re.compile(r"(\{[^{}]*\})")
_LONGEST_URL = 1 << 16
_MOST_OPERATIONS = 10_000
_MOST_BYTES = 16 << 20
"""Of all requests together: an example may be in many of them. A spec file has at most 1 MiB."""
MOST_ENTRIES = 20_000_000
"""The most entries read of all parts, which takes a few seconds; a part counts each time it is referenced."""
_ENTRIES_OF_PART = 10
"""What each part costs in addition to its own entries and those of its children."""


def _read_plain(text: str) -> Any:
    """A scalar without quotes: a number if JSON has it, else text, as OpenAPI reads YAML."""
    if not text.startswith(_NUMBER_BEGINS):
        return text
    try:
        return decode_json(text)
    except JsonLimitError:
        raise
    except JsonError:
        return text


_YAML = YamlKind(deepest=DEEPEST, read_plain=_read_plain, allows_aliases=True)


def read_openapi(content: bytes, base_url: str | None = None) -> ImportedSpec:
    """Read a document.

    Args:
        content: JSON or YAML.
        base_url: the server; None for the first one of the document.

    Raises:
        ValueError: it is not such a document, or says neither where to send to nor what.
    """
    document = _Document(_decode(content))
    try:
        base = (base_url or document.find_server()).rstrip("/")
        requests = _take_bounded(document.list_requests(base))
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError("a part of it is of another kind than OpenAPI has there") from error
    if not requests:
        raise ValueError("it has no operation")
    return ImportedSpec(source="openapi", requests=requests, base=base)


def _take_bounded(requests: Iterator[ImportedRequest]) -> list[ImportedRequest]:
    taken: list[ImportedRequest] = []
    size = 0
    for request in requests:
        taken.append(request)
        texts = (request.url, request.body or "", *chain(*request.headers), *request.notes)
        size += sum(map(len, texts))
        if len(taken) > _MOST_OPERATIONS:
            raise ValueError(f"it has more than {_MOST_OPERATIONS:,} operations")
        if size > _MOST_BYTES:
            raise ValueError(f"its requests take more than {_MOST_BYTES >> 20} MiB, examples included")
    return taken


def _decode(content: bytes) -> Mapping[str, Any]:
    value = decode_yaml_or_json(content, _YAML)
    if not isinstance(value, Mapping) or "openapi" not in value:
        found = (
            f" but Swagger {value['swagger']}" if isinstance(value, Mapping) and "swagger" in value else ""
        )
        raise ValueError(f"it is not an OpenAPI 3 document{found}")
    if not str(value["openapi"]).startswith("3."):
        raise ValueError(f"openapi: {value['openapi']} is not 3.0 or 3.1")
    return value


class _Document:
    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = value
        self._found: dict[str, Any] = {}
        """What each reference leads to."""
        self._costs: dict[int, int] = {}
        self._entries = 0

    def find_server(self) -> str:
        """The URL of the first server, with the defaults of its variables."""
        servers = self._value.get("servers") or [{}]
        server = self.resolve(servers[0])
        variables = (server.get("variables") or {}).items()
        defaults = {str(name): str(self.resolve(each).get("default", "")) for name, each in variables}
        url = _fill(str(server.get("url", "")), defaults)
        if not urlsplit(url).netloc:
            raise ValueError(
                f"its first server is {url or 'missing'}; say where to send to by --base-url URL"
            )
        return url

    def list_requests(self, base: str) -> Iterator[ImportedRequest]:
        """The operations in the order of the document."""
        for path, written in (self._value.get("paths") or {}).items():
            item = self.resolve(written)
            for method in _METHODS:
                if isinstance(operation := item.get(method), Mapping):
                    yield self._build_request(base, str(path), method, item, self.resolve(operation))

    def _build_request(
        self, base: str, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> ImportedRequest:
        maker = ExampleMaker(self.resolve)
        places: dict[str, str] = {}
        query: list[tuple[str, str]] = []
        headers: list[tuple[str, str]] = []
        for parameter in self._list_parameters(item, operation):
            name, place = str(parameter.get("name")), parameter.get("in")
            if place != "path" and not parameter.get("required") and self._find_example(parameter) is None:
                continue
            value = self._make_parameter(parameter, maker)
            text = _write(value)
            if place == "path":
                places[name] = quote(text, safe="")
            elif place == "query":
                query += _list_pairs(name, value, parameter)
            elif place == "header" and name.lower() not in ("accept", "content-type", "authorization"):
                headers.append((name, text))
            elif place == "cookie":
                headers.append(("Cookie", f"{name}={text}"))
        path = _fill(path, places)
        body, kind = self._make_body(operation, maker)
        self._count(maker.made * _ENTRIES_OF_PART)
        return ImportedRequest(
            url=f"{base}{path}{'?' if query else ''}{urlencode(query, safe=':')}",
            method=method.upper(),
            headers=[*headers, *([("Content-Type", kind)] if kind else [])],
            body=body,
            credentials=list(self._list_credentials(operation)),
            name=str(operation.get("operationId") or f"{method.upper()} {path}"),
            statuses=_find_statuses(operation),
            notes=list(dict.fromkeys(maker.notes)),
        )

    def _list_parameters(
        self, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Those of an operation, and of its path where the operation has no other of that name."""
        found = [
            self.resolve(each) for holder in (item, operation) for each in holder.get("parameters") or ()
        ]
        return list({(each.get("name"), each.get("in")): each for each in found}.values())

    def _find_example(self, parameter: Mapping[str, Any]) -> Any:
        given = find_given(parameter)
        return find_given(self.resolve(parameter.get("schema"))) if given is None else given

    def _make_parameter(self, parameter: Mapping[str, Any], maker: ExampleMaker) -> Any:
        given, name = self._find_example(parameter), str(parameter.get("name"))
        if given is not None:
            return maker.take(given, name)
        if parameter.get("in") == "path":
            maker.notes.append(f"{name} is made up: put one that exists, or {{i}}, in its place")
        schema = parameter.get("schema")
        if schema is None:
            contents = list((parameter.get("content") or {}).values())
            schema = self.resolve(contents[0]).get("schema") if contents else {}
        return maker.make(schema, name)

    def _make_body(self, operation: Mapping[str, Any], maker: ExampleMaker) -> tuple[str | None, str]:
        """The body and its type; None if there is none, or none that can be made."""
        contents = self.resolve(operation.get("requestBody")).get("content") or {}
        for kind, media in contents.items():
            plain = str(kind).partition(";")[0].strip().lower()
            if plain == "application/json" or plain.endswith("+json"):
                return json.dumps(self._make_content(media, maker), ensure_ascii=False), str(kind)
        if _FORM in contents:
            fields = self._make_content(contents[_FORM], maker)
            pairs = fields.items() if isinstance(fields, Mapping) else ()
            return urlencode([each for key, value in pairs for each in _list_fields(key, value)]), _FORM
        for kind, media in contents.items():
            given = find_given(self.resolve(media))
            if isinstance(given, str):
                return given, str(kind)
        if contents:
            maker.notes.append(f"has no body: none can be made of the type {', '.join(contents)}")
        return None, ""

    def _make_content(self, media: Any, maker: ExampleMaker) -> Any:
        media = self.resolve(media)
        given = find_given(media)
        return maker.make(media.get("schema"), "") if given is None else maker.take(given, "its body")

    def _list_credentials(self, operation: Mapping[str, Any]) -> Iterator[NeededCredential]:
        """What the first way to prove who asks needs."""
        ways = operation.get("security", self._value.get("security")) or [{}]
        schemes = self.resolve(self._value.get("components")).get("securitySchemes") or {}
        for name in ways[0]:
            scheme = self.resolve(schemes.get(name))
            match scheme.get("type"), scheme.get("in"):
                case "apiKey", "query":
                    yield NeededCredential("", str(scheme.get("name")), str(name))
                case "apiKey", "header":
                    yield NeededCredential(str(scheme.get("name")), "", str(name))
                case "apiKey", "cookie":
                    yield NeededCredential("Cookie", f"{scheme.get('name')}=", str(name))
                case "http", _:
                    word = "Basic" if str(scheme.get("scheme")).lower() == "basic" else "Bearer"
                    yield NeededCredential("Authorization", f"{word} ", str(name))
                case (("oauth2" | "openIdConnect"), _):
                    yield NeededCredential("Authorization", "Bearer ", str(name))

    def resolve(self, value: Any) -> Mapping[str, Any]:
        """Follow the references of a part to what it stands for; an empty mapping if that is none."""
        for _ in range(_MOST_REFERENCES):
            if not isinstance(value, Mapping):
                self._count(_ENTRIES_OF_PART)
                return {}
            self._spend(value)
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            if reference not in self._found:
                self._found[reference] = self._find(reference)
            value = self._found[reference]
        raise ValueError("its references go round in a circle")

    def _find(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            raise ValueError(f"{format_value(reference)} is in another file; put all into one document first")
        value: Any = self._value
        for word in reference[2:].split("/", DEEPEST):
            value = _take(value, unquote(word).replace("~1", "/").replace("~0", "~"))
        return value

    def _spend(self, part: Mapping[str, Any]) -> None:
        cost = self._costs.get(id(part))
        if cost is None:
            inner = sum(len(each) for each in part.values() if isinstance(each, Mapping | list))
            cost = self._costs[id(part)] = _ENTRIES_OF_PART + len(part) + inner
        self._count(cost)

    def _count(self, entries: int) -> None:
        """Add to the entries read so far; raise `ValueError` if there are too many."""
        self._entries += entries
        if self._entries > MOST_ENTRIES:
            raise ValueError(f"its references and examples stand for more than {MOST_ENTRIES:,} entries")


def _fill(url: str, values: Mapping[str, str]) -> str:
    """A URL with values in the places of variables."""
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


def _take(value: Any, key: str) -> Any:
    """The part of a mapping or a list that a word of a JSON pointer names (RFC 6901)."""
    if isinstance(value, Mapping):
        return value.get(key)
    place = parse_digits(key, len(value) - 1) if isinstance(value, list) and value else None
    return None if place is None else value[place]


def _find_statuses(operation: Mapping[str, Any]) -> list[int]:
    """The first status of success; none if that is 200, or is not said."""
    for status in operation.get("responses") or ():
        text = str(status)
        if len(text) == 3 and text.startswith("2") and text.isascii() and text.isdigit():
            return [] if text == "200" else [int(text)]
    return []


def _list_pairs(name: str, value: Any, parameter: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pairs of a query that a parameter stands for, by its `style` and `explode`."""
    style = parameter.get("style", "form")
    if isinstance(value, Mapping) and style == "deepObject":
        return [(f"{name}[{key}]", _write(each)) for key, each in value.items()]
    if not parameter.get("explode", style == "form"):
        parts = [part for pair in value.items() for part in pair] if isinstance(value, Mapping) else value
        between = _DELIMITERS.get(style, ",")
        return [(name, between.join(map(_write, parts)) if isinstance(parts, list) else _write(parts))]
    if isinstance(value, Mapping):
        return [(str(key), _write(each)) for key, each in value.items()]
    return _list_fields(name, value)


def _list_fields(name: str, value: Any) -> list[tuple[str, str]]:
    """The fields of a form that a value stands for: of a list, one for each of its items."""
    return [(name, _write(each)) for each in (value if isinstance(value, list) else [value])]


def _write(value: Any) -> str:
    """A value as it stands in a URL, a header or a form."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ",".join(map(_write, value))
    return json.dumps(value, default=str)
