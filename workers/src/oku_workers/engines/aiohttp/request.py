"""What request `i` is, in the terms of aiohttp: its URL, its headers and its body.

What is the same for every index is worked out in advance. A spec that aiohttp cannot send raises an error
when a request is asked for, not here, so that each request ends in an outcome.
"""

from collections.abc import Callable, Mapping
from typing import Any

from yarl import URL

from oku_core.spec.spec import Spec
from oku_core.spec.values.header import Header, build_headers
from oku_core.spec.values.placeholder import build_template, is_constant
from oku_core.spec.values.url import Url
from oku_workers.engines.urls import build_origin, build_target


def build_urls(spec: Spec) -> Callable[[int], URL]:
    """A function from an index to its URL; with several URLs, index `i` asks the `i` modulo how many.

    Path and query are sent as they are written; what a URL cannot contain is percent-encoded.
    """
    builders = [_build_url(url) for url in spec.urls]
    if len(builders) == 1:
        return builders[0]
    return lambda index: builders[index % len(builders)](index)


def build_shared_headers(spec: Spec) -> list[tuple[str, str]]:
    """The headers of the spec that all requests share."""
    shared, _ = _split_headers(spec)
    return build_headers(shared)(0)


def build_arguments(spec: Spec) -> Callable[[int], Mapping[str, Any]] | None:
    """A function from an index to the arguments of its request beside method and URL.

    They are for `Redirects` where the spec allows redirections, else for aiohttp. None when every request is
    without any, but for `allow_redirects=False`: that is the quicker call.
    """
    _, own = _split_headers(spec)
    headers = build_headers(own) if own else None
    body = None if spec.body is None else build_template(spec.body)
    if headers is None and body is None and not spec.max_redirects:
        return None
    # `Redirects` follows them, where any are to be followed.
    redirects = {} if spec.max_redirects else {"allow_redirects": False}

    def build(index: int) -> Mapping[str, Any]:
        arguments: dict[str, Any] = dict(redirects)
        if headers is not None:
            arguments["headers"] = headers(index)
        if body is not None:
            arguments["data"] = body(index).encode()
        return arguments

    return build


def _build_url(template: Url) -> Callable[[int], URL]:
    try:
        origin, target = build_origin(template), build_target(template)
    except ValueError:
        return lambda _: URL(template)
    scheme, authority, build = origin.scheme, origin.raw_authority, URL.build
    path, query = build_template(target.path), build_template(target.query)

    def build_for(index: int) -> URL:
        return build(
            scheme=scheme, authority=authority, path=path(index), query_string=query(index), encoded=True
        )

    if not is_constant(template):
        return build_for
    url = build_for(0)
    return lambda _: url


def _split_headers(spec: Spec) -> tuple[list[Header], list[Header]]:
    """The headers of the spec that all requests share, and the others.

    A name goes to one side as a whole, for what a request says replaces what all share.
    """
    if spec.max_redirects:
        # What a session has goes to everybody, wherever a redirection leads.
        return [], list(spec.headers)
    own = {header.name.lower() for header in spec.headers if not is_constant(header)}
    return (
        [header for header in spec.headers if header.name.lower() not in own],
        [header for header in spec.headers if header.name.lower() in own],
    )
