"""`Http`: what a scenario makes requests with."""

import asyncio
import re
from collections.abc import Callable, Container, Mapping
from functools import lru_cache
from time import monotonic_ns
from typing import Unpack

from oku.host_session import RequestResult
from oku.http.call import Expected, HttpCall, RequestOptions
from oku.http.http_client import HttpClient
from oku.http.outgoing_request import OutgoingRequest
from oku.http.response import RequestError, Response
from oku.http.scope import GIVEN_UP, NO_REASON, Scope, explain_exception
from oku_core.accounting.outcome import FAILED_CHECK, OK, TIMEOUT, UNEXPECTED_STATUS
from oku_core.http_client.cookies import CookieJar
from oku_core.http_client.error_reason import explain_error, explain_status, explain_timeout
from oku_core.http_client.http1_connection import TransportError
from oku_core.spec.values.check import list_codes, parse_expect_status
from oku_core.spec.values.delay import parse_delay
from oku_core.spec.values.quantity import parse_duration_s
from oku_core.uniform import uniform

_NO_OPTIONS: RequestOptions = {}
_NO_ROW: Mapping[str, str] = {}
_ANY = "any"
_CREDENTIALS = re.compile("//[^/]*@")
_DRAWS_PER_ITERATION = 1 << 10
"""Think times repeat after this many calls in an iteration."""


class Http:
    """Makes the requests of one iteration; a scenario that has an argument `http` gets one.

    Relative URLs go behind the base URL of the run. `{i}` in a URL stands for the index of the iteration, and
    the name of a column in braces for its value in the row.

    Args:
        client: has the connections.
        scope: where requests count.
        row: of the iteration.
        user_cookies: the cookies of the user whose iteration it is.
        user: the number of that user, from 0.

    Attributes:
        user: as given.
        calls: those that were not awaited, and those that are tasks and have not ended.
    """

    __slots__ = ("_client", "_cookies", "_draws", "_row", "_scope", "_user_cookies", "calls", "user")

    def __init__(
        self,
        client: HttpClient,
        scope: Scope,
        row: Mapping[str, str] = _NO_ROW,
        user_cookies: CookieJar | None = None,
        user: int = 0,
    ) -> None:
        self.user = user
        self._client = client
        self._scope = scope
        self.calls = scope.calls
        self._row = row
        self._user_cookies = user_cookies
        self._cookies = CookieJar()
        self._draws = 0

    @property
    def base_url(self) -> str | None:
        """What relative URLs stand behind; None without one."""
        return self._client.spec.base_url

    @property
    def index(self) -> int | None:
        """The index of the iteration; None outside of iterations."""
        iteration = self._scope.iteration
        return None if iteration is None else iteration.index

    def request(self, method: str, url: str, **options: Unpack[RequestOptions]) -> HttpCall:
        """A request with any method; `RequestOptions` explains what it may have."""
        return HttpCall(self, method.upper(), url, options)

    def get(self, url: str, **options: Unpack[RequestOptions]) -> HttpCall:
        """A GET request."""
        return HttpCall(self, "GET", url, options)

    def post(self, url: str, **options: Unpack[RequestOptions]) -> HttpCall:
        """A POST request."""
        return HttpCall(self, "POST", url, options)

    def put(self, url: str, **options: Unpack[RequestOptions]) -> HttpCall:
        """A PUT request."""
        return HttpCall(self, "PUT", url, options)

    def patch(self, url: str, **options: Unpack[RequestOptions]) -> HttpCall:
        """A PATCH request."""
        return HttpCall(self, "PATCH", url, options)

    def delete(self, url: str, **options: Unpack[RequestOptions]) -> HttpCall:
        """A DELETE request."""
        return HttpCall(self, "DELETE", url, options)

    def head(self, url: str, **options: Unpack[RequestOptions]) -> HttpCall:
        """A HEAD request."""
        return HttpCall(self, "HEAD", url, options)

    def options(self, url: str, **options: Unpack[RequestOptions]) -> HttpCall:
        """An OPTIONS request."""
        return HttpCall(self, "OPTIONS", url, options)

    def check(self, condition: object, text: object) -> bool:
        """Have the iteration fail unless a condition holds; returns whether it does.

        Args:
            condition: true or false, or what Python takes for it.
            text: the reason if it does not hold.
        """
        if not condition:
            self._scope.fail(text)
        return bool(condition)

    async def think(self, time: str | float) -> None:
        """Wait as a user does: `2` or `"2s"`, or any time within `"1s..3s"`, or `"exp:2s"`.

        How long depends on the seed of the run, the index and the number of the call alone.
        """
        quantile_s = parse_think_time(time)
        place = (self.index or 0) * _DRAWS_PER_ITERATION + self._draws % _DRAWS_PER_ITERATION
        self._draws += 1
        await asyncio.sleep(quantile_s(uniform(self._client.spec.seed or 0, place)))

    def keep_cookies(self) -> None:
        """Have the cookies of the user from now on, which stay from one of its iterations to the next."""
        if self._user_cookies is not None:
            self._cookies = self._user_cookies

    def clear_cookies(self) -> None:
        """Forget the cookies."""
        self._cookies.clear()

    async def send(self, call: HttpCall) -> Response:
        """Send a request and count it; awaiting a call does it.

        Raises:
            RequestError: there is no complete answer, or, outside of iterations, one that is not ok.
            ValueError: this is not a request that can be sent.
            Exception: a check of it has raised it; the request is counted.
        """
        options = call.options or _NO_OPTIONS
        plan = self._client.find_plan(call.method, call.url)
        name = options.get("name") or f"{call.method} {_name_path(call.url)}"
        expected = options.get("expect")
        codes = self._client.expected if expected is None else _parse_expected(_freeze(expected))
        timeout_s = self._client.spec.timeout_s
        if (own_s := options.get("timeout")) is not None:
            timeout_s = own_s
            self._client.allow_timeout(timeout_s)
        sending = OutgoingRequest(self._client, plan, options, self.index, self._row)
        begun_ns = monotonic_ns()
        try:
            answer = await sending.send(begun_ns + int(timeout_s * 1e9), self._cookies)
        except TransportError as error:
            reason = explain_error(error.outcome, error.cause, explain_timeout(timeout_s))
            self._record(name, error.outcome, begun_ns, reason=reason)
            raise RequestError(name, reason) from None
        except asyncio.CancelledError:
            self._record(name, TIMEOUT, begun_ns, reason=GIVEN_UP)
            raise
        latency_us = (monotonic_ns() - begun_ns) // 1000
        response = Response(name, sending, answer, self._scope)
        status, outcome, reason, raised = answer.status, OK, "", None
        if status not in codes:
            outcome, reason = UNEXPECTED_STATUS, explain_status(status)
        elif call.checks:
            reason, raised = _find_failed_check(call, response)
            outcome = FAILED_CHECK if reason else OK
        self._scope.record(RequestResult(name, outcome, status, latency_us, answer.received, reason))
        if outcome:
            response.ok = False
            if raised is not None:
                raise raised
            if self._scope.iteration is None:
                raise RequestError(name, reason, response)
        return response

    def _record(self, name: str, outcome: int, begun_ns: int, reason: str) -> None:
        latency_us = (monotonic_ns() - begun_ns) // 1000
        self._scope.record(RequestResult(name, outcome, 0, latency_us, reason=reason))


def _find_failed_check(call: HttpCall, response: Response) -> tuple[str, BaseException | None]:
    """Find the reason of the first failed check, and the exception that it raised; empty and None if none."""
    for condition, text in call.checks:
        try:
            if not condition(response):
                return str(text) or NO_REASON, None
        except RequestError as error:
            return error.reason, None
        except BaseException as error:  # noqa: BLE001  # raised again once the request is counted
            return explain_exception(error), error
    return "", None


@lru_cache(1_000)
def _name_path(url: str) -> str:
    """What requests of a URL are counted under: its path as it is written, behind its host if it is whole."""
    return _CREDENTIALS.sub("//", url.partition("?")[0].partition("#")[0]) or "/"


@lru_cache(256)
def _parse_expected(expected: str | int | tuple[str | int, ...]) -> Container[int]:
    """The statuses that are expected."""
    return range(1_000) if expected == _ANY else list_codes(parse_expect_status(expected))


def _freeze(expected: Expected) -> str | int | tuple[str | int, ...]:
    return tuple(expected) if isinstance(expected, list) else expected


@lru_cache(256)
def parse_think_time(text: str | float) -> Callable[[float], float]:
    """Read a think time: seconds, `1.5s`, `1s..3s` (any time between), or another form of a delay.

    Returns a function from a probability in `[0, 1)` to seconds.

    Raises:
        ValueError: this is none.
    """
    low, dots, high = str(text).partition("..")
    if not dots:
        return parse_delay(text).quantile_s
    high_s = parse_duration_s(high.strip())
    unit = high.strip().lstrip("0123456789._ ")
    low_s = parse_duration_s(low.strip() if low.strip().lstrip("0123456789._ ") else f"{low.strip()}{unit}")
    if not 0 <= low_s <= high_s:
        raise ValueError(f"{text!r} is not a think time such as 2s, 1s..3s or exp:2s")
    return lambda p: low_s + p * (high_s - low_s)
