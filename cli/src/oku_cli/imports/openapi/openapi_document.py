"""Reads an OpenAPI document (3.0, 3.1): one request for each operation, with values that fit its schemas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from oku_cli.imports.imported_spec import ImportedRequest, ImportedSpec, name_some
from oku_cli.imports.openapi.openapi_operation import Operation, OperationReader
from oku_cli.imports.openapi.openapi_references import References
from oku_cli.imports.openapi.openapi_servers import Servers
from oku_cli.imports.openapi.schema_parts import WrittenNumber
from oku_cli.yaml_reader import YamlKind, decode_yaml_or_json
from oku_core.json_reader import DEEPEST, JsonError, JsonLimitError, decode_json

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_DELETE = "delete"
_NUMBER_BEGINS = tuple("-0123456789")
_MOST_OPERATIONS = 10_000
_MOST_BYTES = 16 << 20
"""Of all requests together: an example may be in many of them. A spec file has at most 1 MiB."""


@dataclass(frozen=True, kw_only=True)
class OpenApiChoice:
    """The choice of operations of a document.

    Attributes:
        base_url: the server; None for the first one of the document.
        deletes: whether operations with the method DELETE are taken.
    """

    base_url: str | None = None
    deletes: bool = False


_DEFAULT = OpenApiChoice()


def _read_plain(text: str) -> Any:
    """A scalar without quotes: a number if JSON has it, else text, as OpenAPI reads YAML."""
    if not text.startswith(_NUMBER_BEGINS):
        return text
    try:
        number = decode_json(text)
    except JsonLimitError:
        raise
    except JsonError:
        return text
    return WrittenNumber(text) if isinstance(number, float) else number


_YAML = YamlKind(deepest=DEEPEST, read_plain=_read_plain, allows_aliases=True)


def read_openapi(content: bytes, choice: OpenApiChoice = _DEFAULT) -> ImportedSpec:
    """Read a document, which is JSON or YAML.

    Raises:
        ValueError: it is not such a document, or lacks a server or operations.
    """
    document = _decode(content)
    references = References(document)
    reader = OperationReader(references, document)
    left: list[str] = []
    requests: list[ImportedRequest] = []
    size = 0
    try:
        servers = Servers(references, document, choice.base_url)
        for operation in _list_operations(references, document):
            if operation.method == _DELETE and not choice.deletes:
                left.append(operation.name(operation.path))
                continue
            notes: list[str] = []
            base = servers.choose(operation.item, operation.content, notes)
            requests.append(request := reader.build_request(operation, base, notes))
            size += _measure(request)
            _check_bounds(len(requests), size)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError("a part of it is of another kind than OpenAPI has there") from error
    if not requests:
        raise ValueError(
            "it has only DELETE operations; --deletes includes them" if left else "it has no operation"
        )
    notes = list(servers.notes)
    if left:
        notes.append(f"Left out: {len(left)} DELETE (--deletes takes them): {name_some(left)}.")
    if references.missing:
        notes.append(f"Not in the document, but referred to: {name_some([*references.missing])}.")
    return ImportedSpec(source="openapi", requests=requests, base=servers.base, notes=notes)


def _list_operations(references: References, document: Mapping[str, Any]) -> Iterator[Operation]:
    """The operations in the order of the document."""
    for path, written in (document.get("paths") or {}).items():
        item = references.resolve(written)
        for method in _METHODS:
            if isinstance(operation := item.get(method), Mapping):
                yield Operation(str(path), method, item, references.resolve(operation))


def _measure(request: ImportedRequest) -> int:
    texts = (request.url, request.body or "", *chain(*request.headers), *request.notes)
    return sum(map(len, texts))


def _check_bounds(requests: int, size: int) -> None:
    if requests > _MOST_OPERATIONS:
        raise ValueError(f"it has more than {_MOST_OPERATIONS:,} operations")
    if size > _MOST_BYTES:
        raise ValueError(f"its requests take more than {_MOST_BYTES >> 20} MiB, examples included")


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
