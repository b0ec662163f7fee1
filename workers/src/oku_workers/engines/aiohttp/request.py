"""What request `i` is, in the terms of aiohttp: its URL, its headers and its body.

What is the same for every index is worked out in advance. A spec that aiohttp cannot send raises an error
when a request is asked for, not here, so that each request ends in an outcome.
"""

from collections.abc import Callable, Mapping
from typing import Any

from yarl import URL

from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.values.header import Header, build_headers
from oku_core.spec.values.placeholder import build_template, is_constant
from oku_core.spec.values.url import Url
from oku_workers.engines.urls import build_origin, build_target


def build_shared_headers(mix: RequestMix, *, follows_redirects: bool) -> list[tuple[str, str]]:
    """The headers of the spec that all requests share, if there is only one kind of them."""
    if len(mix.templates) != 1:
        return []
    shared, _ = _split_headers(mix.templates[0], follows_redirects=follows_redirects)
    return build_headers(shared)(0)


def build_arguments(
    template: RequestTemplate, *, is_only: bool, follows_redirects: bool
) -> Callable[[int], Mapping[str, Any]] | None:
    """A function from an index to the arguments of its request beside method and URL.

    They are for `Redirects` where the spec allows redirections, else for aiohttp. None when every request is
    without any, but for `allow_redirects=False`: that is the quicker call.

    Args:
        template: what to send.
        is_only: whether the session sends what all requests share (`build_shared_headers`).
        follows_redirects: whether the spec allows redirections.
    """
    _, own = _split_headers(template, follows_redirects=follows_redirects or not is_only)
    headers = build_headers(own) if own else None
    body = None if template.body is None else build_template(template.body)
    if headers is None and body is None and not follows_redirects:
        return None
    # `Redirects` follows them, where any are to be followed.
    redirects = {} if follows_redirects else {"allow_redirects": False}

    def build(index: int) -> Mapping[str, Any]:
        arguments: dict[str, Any] = dict(redirects)
        if headers is not None:
            arguments["headers"] = headers(index)
        if body is not None:
            arguments["data"] = body(index).encode()
        return arguments

    return build


def build_url(template: Url) -> Callable[[int], URL]:
    """A function from an index to the URL of its request.

    Path and query are sent as they are written; what a URL cannot contain is percent-encoded.
    """
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


def _split_headers(
    template: RequestTemplate, *, follows_redirects: bool
) -> tuple[list[Header], list[Header]]:
    """The headers that all requests of a kind share, and the others.

    A name goes to one side as a whole, for what a request says replaces what all share.
    """
    if follows_redirects:
        # What a session has goes to everybody, wherever a redirection leads.
        return [], list(template.headers)
    own = {header.name.lower() for header in template.headers if not is_constant(header)}
    return (
        [header for header in template.headers if header.name.lower() not in own],
        [header for header in template.headers if header.name.lower() in own],
    )
