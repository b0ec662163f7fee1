"""Writes an import as a spec in YAML, with comments."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import filterfalse
from typing import Any
from urllib.parse import quote_plus, urlsplit

import yaml

from oku_cli.imports.headers import SecretBox
from oku_cli.imports.imported_spec import ImportedRequest, ImportedSpec, LiteralText, split_origin
from oku_cli.terminal.ci_commands import defuse, escape_marks, has_mark
from oku_core.json_reader import JsonError, decode_json
from oku_core.spec.target import HEAVIEST, MOST_TARGETS
from oku_core.spec.values.file_reference import FILE_MARK
from oku_core.spec.values.scalar import LONGEST_NAME, parse_text
from oku_core.spec.values.template import has_placeholders

_DEEPEST_JSON = 5
"""Levels of a JSON body that are written as YAML; a deeper one is written as text."""
_JSON_TYPE = "application/json"
_COOKIE = "Cookie"
_WIDTH = 110
_TEXT_TAG = "tag:yaml.org,2002:str"
_EXPONENT = re.compile(r"-?[0-9.]+[eE][-+]?[0-9]+")
"""A text that is a number in JSON and a spec file, but not for PyYAML, which would not quote it."""


def write_spec(imported: ImportedSpec, secrets: SecretBox) -> str:
    """Write a spec.

    Args:
        imported: what it is made from.
        secrets: keeps secrets out of the text.
    """
    requests, notes = _limit(imported.requests), list(imported.notes)
    requests = [_write_request(request, secrets) for request in requests]
    if left := len(imported.requests) - len(requests):
        notes.append(f"{left} requests that were the rarest are left out: a spec has at most {MOST_TARGETS}")
    document: dict[str, Any] = {}
    if len(requests) == 1:
        document |= _build_single(requests[0], secrets)
    else:
        document |= _build_many(requests, secrets.hide_query(imported.base), secrets)
    document |= imported.settings
    if "proxy" in document:
        document["proxy"] = secrets.hide_query(document["proxy"])
    notes += [
        f"{_name(request)}: {note}" if len(requests) > 1 else note
        for request in requests
        for note in request.notes
    ]
    text = _dump(document)
    notes += [*secrets.literal.describe(), *_describe_secrets(secrets.names)]
    head = [f"Made by oku import {imported.source}.", *notes]
    return "".join(f"# {_clean(line)}\n" for line in head) + text


def _limit(requests: Sequence[ImportedRequest]) -> list[ImportedRequest]:
    """The requests that occur most often, in their order."""
    places = sorted(range(len(requests)), key=lambda place: (-requests[place].weight, place))[:MOST_TARGETS]
    return [requests[place] for place in sorted(places)]


def _write_request(request: ImportedRequest, secrets: SecretBox) -> ImportedRequest:
    """A request with its name, URL and headers in the form of a spec; its body is still as it is sent."""
    url = secrets.hide_query(request.url)
    headers = [(name, secrets.hide_header(name, value)) for name, value in request.headers]
    added: list[tuple[str, str]] = []
    for place, before, name in request.credentials:
        if place:
            added.append((place, secrets.literal.write(before, f"header {place}") + secrets.stand_for(name)))
        else:
            parameter = secrets.literal.write_url(quote_plus(before))
            url += f"{'&' if '?' in url else '?'}{parameter}={secrets.stand_for(name)}"
    return replace(request, name=_name(request), url=url, headers=_add(headers, added), credentials=())


def _add(headers: Sequence[tuple[str, str]], added: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers with others behind them; cookies that are added come into one header with those before."""
    together = [*headers, *added]
    if not any(name == _COOKIE for name, _ in added):
        return together
    cookies = "; ".join(value for name, value in together if name == _COOKIE)
    return [*(each for each in together if each[0] != _COOKIE), (_COOKIE, cookies)]


def _build_single(request: ImportedRequest, secrets: SecretBox) -> dict[str, Any]:
    document: dict[str, Any] = {"url": request.url, "method": request.method}
    if request.headers:
        document["header"] = _write_headers(request.headers)
    if request.body is not None:
        document["body"] = _write_body(request, secrets.literal)
    if request.statuses:
        document["expect-status"] = _write_statuses(request.statuses)
    return document


def _build_many(requests: Sequence[ImportedRequest], base: str, secrets: SecretBox) -> dict[str, Any]:
    urls = [request.url for request in requests]
    base = base or Counter(map(split_origin, urls)).most_common(1)[0][0]
    shared = _find_shared_headers(requests)
    is_shared = frozenset(shared).__contains__
    document: dict[str, Any] = {"base-url": base}
    if shared:
        document["header"] = _write_headers(shared)
    weights, names = _scale([request.weight for request in requests]), _choose_names(requests)
    document["targets"] = [
        _build_target(request, name, weight, _cut_base(url, base))
        | _build_content(request, [*filterfalse(is_shared, request.headers)], secrets)
        for request, name, weight, url in zip(requests, names, weights, urls, strict=True)
    ]
    return document


def _build_target(request: ImportedRequest, name: str, weight: int, url: str) -> dict[str, Any]:
    target: dict[str, Any] = {"name": name}
    if weight != 1:
        target["weight"] = weight
    return target | {"method": request.method, "url": url}


def _cut_base(url: str, base: str) -> str:
    """The rest of a URL after the base, or all of a URL with another base."""
    rest = url.removeprefix(base)
    if rest != url and (not rest or rest.startswith(("/", "?"))):
        return rest or "/"
    return url


def _build_content(
    request: ImportedRequest, headers: Sequence[tuple[str, str]], secrets: SecretBox
) -> dict[str, Any]:
    content: dict[str, Any] = {}
    value = _read_json(request)
    if value is not None:
        headers = [each for each in headers if each[0].lower() != "content-type" or each[1] != _JSON_TYPE]
    if headers:
        content["header"] = _write_headers(headers)
    if value is not None:
        content["json"] = value
    elif request.body is not None:
        content["body"] = _write_body(request, secrets.literal)
    if request.statuses:
        content["expect"] = {"status": _write_statuses(request.statuses)}
    return content


def _read_json(request: ImportedRequest) -> Any:
    """The body as values of YAML; None if it is not JSON, or would not be the same."""
    kinds = [value for name, value in request.headers if name.lower() == "content-type"]
    if request.body is None or kinds != [_JSON_TYPE]:
        return None
    try:
        value = decode_json(request.body)
    except JsonError:
        return None
    is_container = isinstance(value, dict | list) and bool(value)
    return value if is_container and _is_plain(value, _DEEPEST_JSON) else None


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a value is the same in YAML and in a spec."""
    if isinstance(value, dict):
        return depth > 0 and all(_is_plain(key, 1) and _is_plain(value[key], depth - 1) for key in value)
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(each, depth - 1) for each in value)
    if isinstance(value, str):
        return not has_placeholders(value)
    return not isinstance(value, float) or math.isfinite(value)


def _write_headers(headers: Sequence[tuple[str, str]]) -> Any:
    """A mapping, or a list of lines where a name occurs twice."""
    if len({name.lower() for name, _ in headers}) == len(headers):
        return dict(headers)
    return [f"{name}: {value}" for name, value in headers]


def _write_body(request: ImportedRequest, literal: LiteralText) -> str:
    """A body in the form of a spec: one that begins with the mark of a file is not the name of one."""
    body = literal.write(request.body or "", f"the body of {request.name}")
    return f"{FILE_MARK}{body}" if body.startswith(FILE_MARK) else body


def _write_statuses(statuses: Sequence[int]) -> Any:
    return statuses[0] if len(statuses) == 1 else list(statuses)


def _find_shared_headers(requests: Sequence[ImportedRequest]) -> list[tuple[str, str]]:
    """The headers that all requests have, except for descriptions of bodies."""
    shared = set(requests[0].headers).intersection(*(request.headers for request in requests))
    return [each for each in requests[0].headers if each[0].lower() != "content-type" and each in shared]


def _scale(weights: Sequence[int]) -> list[int]:
    """Weights in the same proportions, as far as the largest allowed one lets them."""
    divisor = math.gcd(*weights)
    largest = max(weights) // divisor
    if largest <= HEAVIEST:
        return [weight // divisor for weight in weights]
    return [max(1, round(weight * HEAVIEST / max(weights))) for weight in weights]


def _choose_names(requests: Sequence[ImportedRequest]) -> list[str]:
    names: list[str] = []
    for request in requests:
        name, number = _name(request), 1
        while name in names:
            number += 1
            end = f" ({number})"
            name = f"{_name(request)[: LONGEST_NAME - len(end)]}{end}"
        names.append(name)
    return names


def _name(request: ImportedRequest) -> str:
    name = request.name or f"{request.method} {urlsplit(request.url).path or '/'}"
    printable = "".join(
        char if char.isprintable() else "?" for char in name.replace("{", "").replace("}", "")
    )
    return printable[:LONGEST_NAME].strip() or request.method


def _describe_secrets(names: Sequence[str]) -> Iterator[str]:
    if names:
        flags = " ".join(f"--allow-env {name}" for name in dict.fromkeys(names))
        yield "Secrets are not in this file. Set these variables and allow them where workers run:"
        yield f"  oku run {flags} FILE"


def _clean(line: str) -> str:
    return defuse("".join(char if char.isprintable() else "?" for char in line))


class _Dumper(yaml.SafeDumper):
    """Repeats values that occur twice: spec files have no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # of nothing
        """Write no alias."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quote line breaks of any kind, which other styles fold, invisible characters, numbers and marks."""
    parse_text(text)  # a lone surrogate cannot be written
    is_plain = text.isprintable() and not _EXPONENT.fullmatch(text) and not has_mark(text)
    return dumper.represent_scalar(_TEXT_TAG, text, style=None if is_plain else '"')


_Dumper.add_representer(str, _represent_text)


def _dump(document: Mapping[str, Any]) -> str:
    text: str = yaml.dump(
        dict(document),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_WIDTH,
    )
    # Marks are in quotes, where they have escapes.
    return escape_marks(text, lambda character: f"\\x{ord(character):02x}")
