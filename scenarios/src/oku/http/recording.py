"""`record`: counts a part of a scenario under a name, as if it was a request."""

import asyncio
from time import monotonic_ns
from types import TracebackType
from typing import Self

from oku.host_session import RequestResult
from oku.http.response import RequestError
from oku.http.scope import GIVEN_UP, NO_REASON, explain_exception, scope_at_work
from oku_core.accounting.outcome import EXCEPTION, FAILED_CHECK, OK, TIMEOUT


class record:  # noqa: N801  # read as a verb: `async with record("query"):`
    """Records the time of a block under a name, as if it was a request: `async with record("query"): …`.

    It is `ok`, unless an exception goes through it: a failed check for an `AssertionError` or a
    `RequestError`, a `timeout` for a `TimeoutError` or a cancellation, and else an `exception`; the
    exception goes on. It can be a plain `with`, too, for code that does not wait.

    Args:
        name: what it is counted under.
    """

    __slots__ = ("_begun_ns", "_failure", "_name", "_scope")

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun_ns = 0
        self._failure = ""
        self._scope = scope_at_work.get()

    def fail(self, reason: object) -> None:
        """Record that the block has failed a check, for this reason."""
        self._failure = self._failure or str(reason) or NO_REASON

    def __enter__(self) -> Self:
        """It begins."""
        self._begun_ns = monotonic_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """It has ended."""
        latency_us = (monotonic_ns() - self._begun_ns) // 1000
        outcome, reason = (FAILED_CHECK, self._failure) if self._failure else (OK, "")
        if error is not None:
            outcome, reason = _judge(error)
        self._scope.record(RequestResult(self._name, outcome, 0, latency_us, reason=reason))

    async def __aenter__(self) -> Self:
        """It begins."""
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """It has ended."""
        self.__exit__(kind, error, traceback)


def _judge(error: BaseException) -> tuple[int, str]:
    """What something that ended with an error counts as, and why."""
    if isinstance(error, asyncio.CancelledError):
        return TIMEOUT, GIVEN_UP
    if isinstance(error, RequestError):
        return FAILED_CHECK, str(error)
    if isinstance(error, AssertionError):
        return FAILED_CHECK, explain_exception(error)
    return TIMEOUT if isinstance(error, TimeoutError) else EXCEPTION, explain_exception(error)
