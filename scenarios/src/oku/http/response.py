"""The response to a request of a scenario, and the error of one that has failed."""

import zlib
from functools import cached_property
from typing import Any, Protocol

from multidict import CIMultiDictProxy

from oku.http.http_client import Answer
from oku.http.scope import Scope
from oku_core.digits import parse_digits
from oku_core.http_client.response_head import split_headers
from oku_core.json_reader import JsonError, decode_answer

_CHARSET = "charset="


class Asked(Protocol):
    """Knows the URL of the request."""

    @property
    def url(self) -> str:
        """The URL; after redirections, the last one."""
        ...


class RequestError(Exception):
    """A request got no complete response, or one that fails a check.

    A scenario that does not catch it ends as `failed_check`, with this as its reason.

    Attributes:
        name: what the request is counted under.
        reason: why it failed, in one line.
        response: None without a complete one.
    """

    def __init__(self, name: str, reason: str, response: "Response | None" = None) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason
        self.response = response


class Response:
    """An answer that is complete.

    Attributes:
        name: what the request is counted under.
        status: the status.
        ok: whether the status is one that was expected, and all that was asked of the answer holds.
        received: the bytes of the body as they were sent.
    """

    def __init__(self, name: str, asked: Asked, answer: Answer, scope: Scope) -> None:
        self.name = name
        self._asked = asked
        self.status = answer.status
        self.received = answer.received
        self.ok = True
        self._answer = answer
        self._scope = scope

    def __repr__(self) -> str:
        """Its name and its status."""
        return f"<Response {self.name}: {self.status}>"

    @property
    def url(self) -> str:
        """The URL of the request; after redirections, the last one."""
        return self._asked.url

    @cached_property
    def headers(self) -> CIMultiDictProxy[str]:
        """The headers, whose names may be in any case."""
        return split_headers(self._answer.head)

    @cached_property
    def body(self) -> bytes:
        """The body, as it was before it was compressed.

        Raises:
            RequestError: it was not kept, or cannot be decompressed.
        """
        content = bytes(self._answer.content)
        if self.received > len(content):
            raise self._fail(f"its body of {self.received} bytes was not kept")
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if not content or encoding not in ("gzip", "x-gzip", "deflate"):
            return content
        try:
            return _decompress(content, encoding)
        except zlib.error:
            raise self._fail(f"its body is not {encoding}") from None

    def text(self) -> str:
        """The body as text, in the character set that the answer names, or else UTF-8."""
        kind = self.headers.get("content-type", "").lower()
        charset = kind.partition(_CHARSET)[2].partition(";")[0].strip(" \"'") or "utf-8"
        try:
            return self.body.decode(charset, "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self, pointer: str = "") -> Any:
        """The value in the body that a JSON pointer (RFC 6901) leads to; all of it if the pointer is empty.

        Raises:
            RequestError: the body is not JSON, or has nothing there; the check of the iteration has failed.
        """
        try:
            return find_value(self._document, pointer)
        except LookupError:
            raise self._fail(f"its JSON has nothing at {pointer}") from None

    def check(self, condition: object, text: str) -> bool:
        """Have the iteration fail unless a condition holds.

        Args:
            condition: true or false, or what Python takes for it.
            text: the reason if it does not hold.

        Returns:
            Whether it holds.
        """
        if not condition:
            self.ok = False
            self._scope.fail(f"{self.name}: {text}")
        return bool(condition)

    @cached_property
    def _document(self) -> object:
        try:
            return decode_answer(self.body)
        except JsonError:
            raise self._fail("its body is not JSON") from None

    def _fail(self, reason: str) -> RequestError:
        self.ok = False
        self._scope.fail(f"{self.name}: {reason}")
        return RequestError(self.name, reason, self)


def find_value(document: object, pointer: str) -> object:
    """The value that a JSON pointer (RFC 6901) leads to; the whole document if the pointer is empty.

    Raises:
        LookupError: there is nothing there.
        ValueError: this is not a JSON pointer.
    """
    if not pointer:
        return document
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is not a JSON pointer such as /items/0/id")
    value = document
    for token in pointer[1:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[key]
        elif isinstance(value, list) and (place := parse_digits(key)) is not None and key == f"{place}":
            value = value[place]
        else:
            raise LookupError(pointer)
    return value


def _decompress(content: bytes, encoding: str) -> bytes:
    if encoding != "deflate":
        return zlib.decompress(content, wbits=16 + zlib.MAX_WBITS)
    try:
        return zlib.decompress(content)
    except zlib.error:  # some servers leave the wrapping out
        return zlib.decompress(content, wbits=-zlib.MAX_WBITS)
