"""What request `i` is, in the terms of aiohttp: its URL, its headers and its body.

What is the same for every index is worked out in advance. A spec that aiohttp cannot send raises an error
when a request is asked for, not here, so that each request ends in an outcome.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from oku_core.http_client.client_rules import PIECE_BYTES, build_origin
from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.values.request_content import BODY_TYPE
from oku_core.spec.values.template import Rows, Template
from oku_core.spec.values.url import Url
from oku_workers.engines.http.request_parts import RequestParts, split_target, take_apart

_Values = Sequence[tuple[str, Template]]


def build_shared_headers(mix: RequestMix, *, has_sender: bool) -> list[tuple[str, str]]:
    """The headers of the spec that all requests share, if there is only one kind of them."""
    if len(mix.templates) != 1:
        return []
    shared, _ = _split_headers(take_apart(mix.templates[0]), has_sender=has_sender)
    return [(name, value.literal) for name, value in shared]


def build_arguments(
    template: RequestTemplate, rows: Rows | None = None, *, is_only: bool, has_sender: bool
) -> Callable[[int], Mapping[str, Any]] | None:
    """A function from an index to the arguments of its request beside method and URL.

    They are for the `Sender` where there is one, else for aiohttp. None when every request is
    without any, but for `allow_redirects=False`: that is the quicker call.

    Args:
        template: what to send.
        rows: the rows of the run, if it has data that its requests use.
        is_only: whether the session sends what all requests share (`build_shared_headers`).
        has_sender: whether a `Sender` sends them.
    """
    parts = take_apart(template)
    _, own = _split_headers(parts, has_sender=has_sender or not is_only)
    headers = [(name, value.bind(rows)) for name, value in own]
    body = None if parts.body is None else parts.body.bind_bytes(rows)
    if not headers and body is None and not has_sender:
        return None
    redirects = {} if has_sender else {"allow_redirects": False}

    def build(index: int) -> Mapping[str, Any]:
        arguments: dict[str, Any] = dict(redirects)
        if headers:
            arguments["headers"] = [(name, build_value(index)) for name, build_value in headers]
        if body is not None:
            content = body(index)
            arguments["data"] = content if len(content) <= PIECE_BYTES else LongBody(content)
        return arguments

    return build


def build_url(url: Url, columns: Collection[str] = (), rows: Rows | None = None) -> Callable[[int], URL]:
    """A function from an index to the URL of its request.

    Path and query are sent as they are written; what a URL cannot contain is percent-encoded.

    Args:
        url: with its placeholders.
        columns: those that placeholders may stand for.
        rows: the rows of the run, if it has data that its requests use.
    """
    try:
        origin = build_origin(url)
    except ValueError:
        return lambda _: URL(url)
    target = split_target(url, columns)
    scheme, authority, build = origin.scheme, origin.raw_authority, URL.build
    path, query = target.path.bind(rows), target.query.bind(rows)

    def build_for(index: int) -> URL:
        return build(
            scheme=scheme, authority=authority, path=path(index), query_string=query(index), encoded=True
        )

    if not (target.path.is_constant and target.query.is_constant):
        return build_for
    constant = build_for(0)
    return lambda _: constant


def _split_headers(parts: RequestParts, *, has_sender: bool) -> tuple[_Values, _Values]:
    """The headers that all requests of a kind share, and the others.

    A name goes to one side as a whole, for what a request says replaces what all share.
    """
    if has_sender:
        # A session sends its headers to every host of a redirection. The sender leaves them out for another
        # origin, and merges their `Cookie` with those that servers have set.
        return [], parts.headers
    own = {name.lower() for name, value in parts.headers if not value.is_constant}
    return (
        [(name, value) for name, value in parts.headers if name.lower() not in own],
        [(name, value) for name, value in parts.headers if name.lower() in own],
    )


class LongBody(Payload):
    """Bytes that are sent in pieces, each after the one before; they are never copied as a whole."""

    _value: bytes
    _autoclose = True

    def __init__(self, content: bytes) -> None:
        super().__init__(content, content_type=BODY_TYPE)
        self._size = len(content)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Decode the content."""
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the content."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send the content up to the length in a header; all of it if that is None."""
        content = memoryview(self._value)[:content_length]
        for at in range(0, len(content), PIECE_BYTES):
            await writer.write(content[at : at + PIECE_BYTES])
            await asyncio.sleep(0)  # a server that reads at once must not block the event loop
