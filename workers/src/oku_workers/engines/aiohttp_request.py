"""What request `i` is, in the terms of aiohttp: its URL, its headers and its body.

What is the same for every index is worked out beforehand. A spec that aiohttp cannot send raises when a
request is asked for, not here, so that each of them ends in an outcome.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from yarl import URL

from oku_core.request import build_headers, build_template, is_constant
from oku_core.spec import INDEX_PLACEHOLDER, Spec

_MARK = "1234567890123456789"
"""Stands for the index while a URL is encoded; longer than any index."""
# The digits after it may become part of an escape sequence.
_ESCAPED_INDEX = re.compile(r"%[0-9A-Fa-f]?" + re.escape(INDEX_PLACEHOLDER))


def build_urls(spec: Spec) -> Callable[[int], URL]:
    """A function from an index to its URL; with several URLs, index `i` asks the `i` modulo how many."""
    builders = [_build_url(url) for url in spec.urls]
    if len(builders) == 1:
        return builders[0]
    return lambda index: builders[index % len(builders)](index)


def build_shared_headers(spec: Spec) -> list[tuple[str, str]]:
    """The headers of the spec that all requests share."""
    shared, _ = _split_headers(spec)
    return build_headers(shared)(0)


def build_arguments(spec: Spec) -> Callable[[int], Mapping[str, Any]] | None:
    """A function from an index to what its request has beside method, URL and the shared headers, if any."""
    _, own = _split_headers(spec)
    headers = build_headers(own) if own.headers else None
    body = None if spec.body is None else build_template(spec.body)
    if headers is None and body is None:
        return None

    def build(index: int) -> Mapping[str, Any]:
        arguments: dict[str, Any] = {}
        if headers is not None:
            arguments["headers"] = headers(index)
        if body is not None:
            arguments["data"] = body(index).encode()
        return arguments

    return build


def _build_url(template: str) -> Callable[[int], URL]:
    text = build_template(template)
    try:
        return _build_constant(template) if is_constant(template) else _build_encoded(template)
    except ValueError:
        return lambda index: URL(text(index))


def _build_constant(template: str) -> Callable[[int], URL]:
    url = URL(template)
    return lambda _: url


def _build_encoded(template: str) -> Callable[[int], URL]:
    """As `URL` of the text with the index in it, at a third of the cost: it is parsed and encoded once."""
    url = URL(template.replace(INDEX_PLACEHOLDER, _MARK))
    target = (url.raw_path, url.raw_query_string)
    is_kept = sum(part.count(_MARK) for part in target) == template.count(INDEX_PLACEHOLDER)
    if not is_kept or _ESCAPED_INDEX.search(template):
        raise ValueError(f"{template} is another one for each index")
    path, query = (build_template(part.replace(_MARK, INDEX_PLACEHOLDER)) for part in target)
    scheme, authority, build = url.scheme, url.raw_authority, URL.build
    return lambda index: build(
        scheme=scheme, authority=authority, path=path(index), query_string=query(index), encoded=True
    )


def _split_headers(spec: Spec) -> tuple[Spec, Spec]:
    """The spec with those headers only that all requests share, and with the others.

    A name goes to one side as a whole, for what a request says replaces what all share.
    """
    own = {_name(header) for header in spec.headers if not is_constant(header)}
    return (
        msgspec.structs.replace(spec, headers=tuple(h for h in spec.headers if _name(h) not in own)),
        msgspec.structs.replace(spec, headers=tuple(h for h in spec.headers if _name(h) in own)),
    )


def _name(header: str) -> str:
    return header.partition(":")[0].lower()
