"""A request that is sent when it is awaited, with its options and checks."""

import sys
from collections.abc import Callable, Coroutine, Generator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypedDict

from oku.http.request_body import Data, Fields, Uploads
from oku.http.response import Response
from oku.http.scope import OpenCall

Expected = str | int | list[str | int] | tuple[str | int, ...]
"""Statuses that are expected: `200`, `"2xx"`, `"200,404"`, or several of these."""


class RequestOptions(TypedDict, total=False):
    """What a request may have beside its URL; an option that is None is not given, but `json=None` is null.

    Attributes:
        name: what it is counted under; its method and its path as they are written, unless given.
        params: is added to the query of the URL.
        headers: replace headers of the run with the same name; None replaces nothing.
        json: the body, as JSON.
        data: the body as it is, or the fields of a form.
        files: files of a form that are uploaded, by the names of their fields.
        bearer: a token for the header `Authorization`.
        auth: user and password for the header `Authorization`.
        expect: which statuses are expected: 2xx, unless given; `any` for all.
        timeout: in seconds; by default the run's.
        allow_redirects: whether redirections are followed; they are, unless this is false.
        discard_body: whether the body is counted alone, and not kept.
    """

    name: str | None
    params: Fields | None
    headers: Mapping[str, str | bytes | None] | None
    json: object
    data: Data | None
    files: Uploads | None
    bearer: str | bytes | None
    auth: tuple[str | bytes, str | bytes] | None
    expect: Expected | None
    timeout: float | None
    allow_redirects: bool | None
    discard_body: bool | None


OPTIONS = frozenset(RequestOptions.__annotations__)

Condition = Callable[[Response], object]
Check = tuple[Condition, str]
"""A condition on a response, and the reason that is recorded when it does not hold."""


class CallSender(Protocol):
    """Sends calls.

    Attributes:
        calls: those that were not awaited, and those that are tasks and have not ended.
    """

    calls: set[OpenCall]

    def send(self, call: "HttpCall") -> Coroutine[Any, Any, Response]:
        """Send a request, and count it."""
        ...


class HttpCall(Coroutine[Any, Any, Response]):
    """A request that is sent when it is awaited: `response = await http.get("/")`.

    It can be a task of its own, as every coroutine: `group.create_task(http.get("/"))`.

    What is asked of the answer with `check`, `json` and `text` counts in the outcome of the request; what is
    asked of the response later counts in that of the iteration alone.
    """

    __slots__ = ("_code", "_place", "_running", "_sender", "checks", "method", "options", "url")

    def __init__(self, sender: CallSender, method: str, url: str, options: RequestOptions) -> None:
        if not options.keys() <= OPTIONS:
            raise TypeError(f"{method} {url}: there is no argument {min(options.keys() - OPTIONS)}")
        frame = sys._getframe(2)  # noqa: SLF001  # a traceback would take ten times as long
        self._code, self._place = frame.f_code, frame.f_lasti
        self._sender = sender
        self._running: Coroutine[Any, Any, Response] | None = None
        self.method = method
        self.url = url
        self.options = options
        self.checks: list[Check] = []
        sender.calls.add(self)

    def find_place(self) -> tuple[str, int]:
        """The file and the line that made it, behind the method of `Http`."""
        lines = self._code.co_lines()
        line = next((line for start, end, line in lines if start <= self._place < end), None)
        return self._code.co_filename, line or self._code.co_firstlineno

    def __await__(self) -> Generator[Any, Any, Response]:
        """Send it, and wait for its answer."""
        self._sender.calls.discard(self)
        return self._sender.send(self).__await__()

    def send(self, value: object) -> Any:
        """Go on, as the task that it is."""
        try:
            return self._run().send(value)
        except BaseException:
            self._sender.calls.discard(self)
            raise

    def throw(
        self,
        kind: Any,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        """Be cancelled, as the task that it is."""
        running = self._run()
        try:
            return running.throw(kind) if value is None else running.throw(kind, value, traceback)
        except BaseException:
            self._sender.calls.discard(self)
            raise

    def close(self) -> None:
        """End; a call that was not sent is not sent."""
        self._sender.calls.discard(self)
        if self._running is not None:
            self._running.close()

    def _run(self) -> Coroutine[Any, Any, Response]:
        if self._running is None:
            self._running = self._sender.send(self)
        return self._running

    def check(self, condition: Condition, text: str) -> Self:
        """Have the request fail unless a condition holds of its response.

        Args:
            condition: a function of the response; one that raises a `RequestError` does not hold.
            text: the reason if it does not hold.
        """
        self.checks.append((condition, text))
        return self

    async def json(self, pointer: str = "") -> Any:
        """Send it; the value in the answer that a JSON pointer leads to, as `Response.json` gives it."""

        def has_value(response: Response) -> bool:
            response.json(pointer)
            return True

        return (await self.check(has_value, f"no JSON at {pointer}")).json(pointer)

    async def text(self) -> str:
        """Send it; the text of the answer, as `Response.text` gives it."""
        return (await self).text()
