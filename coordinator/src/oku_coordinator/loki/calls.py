"""Two calls of Loki's API, and the meaning of each response for the lines."""

import asyncio
import os
from dataclasses import dataclass
from enum import Enum
from typing import Any

import aiohttp
import msgspec

from oku_coordinator.loki.batch import Batch
from oku_coordinator.loki.endpoint import LokiTarget
from oku_core.digits import parse_digits
from oku_core.json_reader import JsonDecoder

PAGE_LINES = 1000
"""The page size of a query; Loki's default limit is 5000."""
_CONNECT_S = 10.0
_REASON_CHARACTERS = 300


class Acceptance(Enum):
    """The result of a call for its lines."""

    DONE = "done"
    REFUSED = "refused"  # these lines will never be accepted
    DENIED = "denied"  # Loki has not judged the lines: wrong password, wrong path
    NOT_SENT = "not_sent"  # there was no connection
    UNCLEAR = "unclear"  # all, some or none of the lines may have been stored


@dataclass(frozen=True)
class CallResult:
    """The result of a call and its reason.

    Attributes:
        acceptance: the meaning for the lines.
        kind: a short key, the same for all responses of its kind.
        reason: in one printable line.
        status: the HTTP status; 0 without a response.
        retry_after_s: the pause that Loki, or a proxy before it, asks for.
    """

    acceptance: Acceptance
    kind: str = ""
    reason: str = ""
    status: int = 0
    retry_after_s: float = 0.0


class LokiCalls:
    """Pushes batches and queries for them, without retries.

    Args:
        target: the address of Loki and the credentials.
    """

    def __init__(self, target: LokiTarget, timeout_s: float) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Open the session; call it in a running event loop."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._target.build_tls()),
            headers=self._target.build_headers(),
            timeout=aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=_CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()

    async def push(self, batch: Batch) -> CallResult:
        """Send a batch."""
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        body = await asyncio.to_thread(batch.build_body)
        answer, _ = await self._call("POST", self._target.push_url, data=body, headers=headers)
        return answer

    async def fetch_stored(self, batch: Batch) -> tuple[CallResult, set[tuple[int, str]]]:
        """Fetch times and lines of the batch's stream within the time range of the batch."""
        stored: set[tuple[int, str]] = set()
        start_ns = batch.first_ns
        while True:
            params = {
                "query": batch.build_selector(),
                "start": str(start_ns),
                "end": str(batch.last_ns + 1),
                "direction": "forward",
                "limit": str(PAGE_LINES),
            }
            # Without the flag, a line's own metadata would be among the labels of its stream.
            headers = {"X-Loki-Response-Encoding-Flags": "categorize-labels", "Cache-Control": "no-cache"}
            answer, body = await self._call("GET", self._target.query_url, params=params, headers=headers)
            if answer.acceptance is not Acceptance.DONE:
                return answer, stored
            try:
                streams = _FOUND.decode(body).data.result
                times = [int(value.at) for stream in streams for value in stream.values]
            except ValueError:
                return CallResult(
                    Acceptance.DENIED, "no Loki", "the response is not from Loki", answer.status
                ), stored
            ours = [stream.values for stream in streams if batch.has_labels(stream.stream)]
            stored |= {(int(value.at), value.line) for values in ours for value in values}
            if len(times) < PAGE_LINES:
                return answer, stored
            # Lines of the last timestamp may continue on the next page; one timestamp with a whole page of
            # lines is skipped.
            start_ns = max(times) if max(times) > start_ns else start_ns + 1

    async def _call(self, method: str, url: str, **settings: Any) -> tuple[CallResult, bytes]:
        assert self._session is not None, "use the pusher inside its `async with`"
        try:
            async with self._session.request(method, url, allow_redirects=False, **settings) as response:
                body = await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return CallResult(Acceptance.NOT_SENT, type(error).__name__, build_reason(_describe(error))), b""
        except TimeoutError:
            return CallResult(Acceptance.UNCLEAR, "timeout", f"no answer in {self._timeout_s:g} s"), b""
        except aiohttp.ClientError as error:
            reason = build_reason(str(error)) or type(error).__name__
            return CallResult(Acceptance.UNCLEAR, type(error).__name__, reason), b""
        status, after = response.status, response.headers.get("Retry-After", "")
        return CallResult(
            acceptance=classify_status(status),
            kind=str(status),
            reason=build_reason(body.decode(errors="replace")) or (response.reason or ""),
            status=status,
            retry_after_s=float(parse_digits(after) or 0),
        ), body


def classify_status(status: int) -> Acceptance:
    """The meaning of a status, by Loki's documentation of its limits and by HTTP."""
    if status in {260, 400, 413, 422}:  # 260: the tenant is blocked
        return Acceptance.REFUSED
    if 200 <= status < 300:
        return Acceptance.DONE
    # Over its rate limit, a stream has some of the lines stored, and gets 429.
    return Acceptance.UNCLEAR if status in {408, 429} or status >= 500 else Acceptance.DENIED


def _describe(error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) -> str:
    """Why there is no connection; shorter than aiohttp's text if the system gives a reason."""
    if isinstance(error, aiohttp.ClientSSLError) or not isinstance(error, aiohttp.ClientConnectorError):
        return str(error)
    number = error.os_error.errno or 0
    what = os.strerror(number) if number > 0 else error.os_error.strerror  # of a name: not found
    return f"{error.host}:{error.port}: {what}"


def build_reason(text: str) -> str:
    """A foreign text as one printable line of bounded length."""
    line = " ".join(text[: 4 * _REASON_CHARACTERS].split())
    line = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line
    )
    return line if len(line) <= _REASON_CHARACTERS else line[: _REASON_CHARACTERS - 1] + "…"


class _Value(msgspec.Struct, array_like=True):  # a third element, the line's metadata, may follow
    at: str
    line: str


class _Stream(msgspec.Struct):
    stream: dict[str, str]
    values: list[_Value]


class _Data(msgspec.Struct):
    result: list[_Stream]


class _Found(msgspec.Struct):
    data: _Data


_FOUND: JsonDecoder[_Found] = JsonDecoder(_Found)
