"""Requests in the terms of aiohttp: URL, headers and body of each index.

Constant parts are worked out in advance. A spec that aiohttp cannot send raises an error when a request is
asked for, not here, so that each request ends in an outcome.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from aiohttp import ClientConnectionError
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import StreamWriter
from aiohttp.payload import BytesPayload, Payload
from multidict import CIMultiDict
from yarl import URL

from oku_core.http_client.client_rules import PIECE_BYTES, build_origin
from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.values.request_content import BODY_TYPE, asks_to_close
from oku_core.spec.values.template import Rows
from oku_core.spec.values.url import Url
from oku_workers.engines.http.answer_checks import build_judge
from oku_workers.engines.http.request_parts import split_target, take_apart


class Route:
    """One kind of request.

    Attributes:
        method: of the requests.
        build_url: makes the URL of request `i`.
        build_arguments: makes the other arguments of request `i` for aiohttp.
        answers: judges the answers.
        needs: how much of a body is kept for that, and whether a request has a connection for itself alone.
    """

    __slots__ = ("answers", "build_arguments", "build_url", "method", "needs")

    def __init__(self, template: RequestTemplate, timeout_s: float, rows: Rows | None = None) -> None:
        self.method = template.method
        self.build_url = build_url(template.url, template.columns, rows)
        self.build_arguments = build_arguments(template, rows)
        self.answers = build_judge(template.expect, timeout_s)
        self.needs = self.answers.kept_bytes, asks_to_close(template.headers)


def build_routes(mix: RequestMix, timeout_s: float, rows: Rows | None = None) -> Sequence[Route]:
    """The routes of a spec: index `i` takes the one at `i` modulo how many there are."""
    routes = [Route(template, timeout_s, rows) for template in mix.templates]
    return [routes[place] for place in mix.turns]


def build_arguments(
    template: RequestTemplate, rows: Rows | None = None
) -> Callable[[int], Mapping[str, Any]]:
    """A function from an index to the arguments of its request beside method and URL."""
    parts = take_apart(template)
    headers = [(name, value.bind(rows)) for name, value in parts.headers]
    body = None if parts.body is None else parts.body.bind_bytes(rows)

    def build(index: int) -> Mapping[str, Any]:
        arguments: dict[str, Any] = {"allow_redirects": False}
        if headers:
            arguments["headers"] = CIMultiDict([(name, value(index)) for name, value in headers])
        if body is not None:
            content = body(index)
            arguments["data"] = content if len(content) <= PIECE_BYTES else LongBody(content)
        return arguments

    if body is not None or not all(value.is_constant for _, value in parts.headers):
        return build
    constant = build(0)
    return lambda _: constant


def build_url(url: Url, columns: Collection[str] = (), rows: Rows | None = None) -> Callable[[int], URL]:
    """A function from an index to the URL of its request.

    Path and query are sent as they are written; characters that no URL contains are percent-encoded.

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


class LongBody(BytesPayload):
    """Bytes that are sent in pieces, each after the one before; they are never copied as a whole."""

    def __init__(self, content: bytes) -> None:
        Payload.__init__(self, content, content_type=BODY_TYPE)  # the one between warns of long ones
        self._size = len(content)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send the content up to the length in a header; all of it if that is None.

        If the connection ends before, it may have had an early answer: `ResponseProtocol` decides.
        """
        assert isinstance(writer, StreamWriter)
        writer.send_headers()
        content = memoryview(self._value)[:content_length]
        with suppress(ClientConnectionError):
            for at in range(0, len(content), PIECE_BYTES):
                await writer.write(content[at : at + PIECE_BYTES])
                await asyncio.sleep(0)  # a server that reads at once must not block the event loop
