"""The kinds of requests of a spec in the terms of aiohttp: method, URL, headers and body of each index.

Constant parts are built once. A spec that aiohttp cannot send raises an error when a request is built, not
before, so that each request ends in an outcome.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from aiohttp import ClientConnectionError
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload, Payload
from multidict import CIMultiDict
from yarl import URL

from oku_core.http_client.http1_connection import PIECE_BYTES
from oku_core.http_client.request_head import build_origin
from oku_core.spec.request_template import RequestMix, RequestTemplate
from oku_core.spec.values.request_content import BODY_TYPE, asks_to_close
from oku_core.spec.values.template import Rows
from oku_workers.engines.http.answer_checks import build_judge
from oku_workers.engines.http.request_parts import split_request

Arguments = Mapping[str, Any]
"""The arguments of `ClientSession.request`."""


class Route:
    """One kind of request.

    Attributes:
        build: builds the arguments of request `i`; it may raise why that cannot be sent.
        answers: judges the answers.
        needs: how much of a body the judge needs, and whether a request closes its connection.
    """

    __slots__ = ("answers", "build", "needs")

    def __init__(self, template: RequestTemplate, timeout_s: float, rows: Rows | None) -> None:
        self.build = build_options(template, rows)
        self.answers = build_judge(template.expect, timeout_s)
        self.needs = self.answers.kept_bytes, asks_to_close(template.headers)


def build_routes(mix: RequestMix, timeout_s: float, rows: Rows | None = None) -> Sequence[Route]:
    """The routes of a spec: index `i` takes the one at `i` modulo how many there are."""
    routes = [Route(template, timeout_s, rows) for template in mix.templates]
    return [routes[place] for place in mix.turns]


def build_options(template: RequestTemplate, rows: Rows | None = None) -> Callable[[int], Arguments]:
    """A function from an index to the arguments of its request.

    Path and query are sent as they are written; characters that no URL contains are percent-encoded.
    """
    parts = split_request(template)
    path, query = parts.target.path.bind(rows), parts.target.query.bind(rows)
    headers = [(name, value.bind(rows)) for name, value in parts.headers]
    body = None if parts.body is None else parts.body.bind_bytes(rows)
    try:
        origin = build_origin(template.url)
    except ValueError:
        return lambda _: {"method": template.method, "url": URL(template.url)}
    build_one = partial(URL.build, scheme=origin.scheme, authority=origin.raw_authority, encoded=True)

    def build_url(index: int) -> URL:
        return build_one(path=path(index), query_string=query(index))

    only_url = build_url(0) if parts.target.path.is_constant and parts.target.query.is_constant else None

    def build(index: int) -> Arguments:
        url = only_url or build_url(index)
        arguments: dict[str, Any] = {"method": template.method, "url": url, "allow_redirects": False}
        if headers:
            arguments["headers"] = CIMultiDict([(name, value(index)) for name, value in headers])
        if body is not None:
            content = body(index)
            arguments["data"] = content if len(content) <= PIECE_BYTES else LongBody(content)
        return arguments

    if body is not None or only_url is None or not all(value.is_constant for _, value in parts.headers):
        return build
    constant = build(0)
    return lambda _: constant


class LongBody(BytesPayload):
    """Bytes that are sent in pieces, each after the one before; they are never copied as a whole."""

    def __init__(self, content: bytes) -> None:
        Payload.__init__(self, content, content_type=BODY_TYPE)  # `BytesPayload` warns of long ones
        self._size = len(content)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send the content up to the length in a header; all of it if that is None.

        If the connection ends before, it may have had an early answer: `ResponseProtocol` decides.
        """
        content = memoryview(self._value)[:content_length]
        with suppress(ClientConnectionError):
            for at in range(0, len(content), PIECE_BYTES):
                await writer.write(content[at : at + PIECE_BYTES])
                await asyncio.sleep(0)  # a server that reads at once must not block the event loop
