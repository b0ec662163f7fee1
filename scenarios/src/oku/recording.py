"""Where what a scenario does is counted: in its iteration, or outside of any."""

import asyncio
from contextvars import ContextVar
from pathlib import Path
from time import monotonic_ns
from types import TracebackType
from typing import Self

from oku.host.session import Iteration, RequestResult, Session
from oku.host.user_module import describe_assertion, describe_exception
from oku.request_error import RequestError
from oku_core.accounting.outcome import OUTCOMES, Outcome

OK, UNEXPECTED_STATUS, TIMEOUT, FAILED_CHECK, EXCEPTION = map(
    OUTCOMES.index,
    (Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.TIMEOUT, Outcome.FAILED_CHECK, Outcome.EXCEPTION),
)
_FOLDER = Path.cwd()
"""Of the user code: a host begins in it."""
NO_REASON = "a check has failed"
"""The reason of a check that says none."""
GIVEN_UP = "given up by the scenario"
"""The reason of what was cancelled before it ended."""


class Scope:
    """An iteration as the code in it sees it.

    Args:
        session: counts; None where nothing is counted.
        iteration: which one; None outside of any.

    Attributes:
        is_cut: whether it is being cut off: what it has not ended is not counted.
    """

    __slots__ = ("_session", "is_cut", "iteration")

    def __init__(self, session: Session | None = None, iteration: Iteration | None = None) -> None:
        self._session = session
        self.iteration = iteration
        self.is_cut = False

    def record(self, result: RequestResult) -> None:
        """Count what has ended; what is not ok makes the iteration fail."""
        if result.outcome and self.iteration is not None and not self.iteration.failure:
            self.iteration.failure = f"{result.name}: {result.reason}"
        if self._session is not None and not self.is_cut:
            self._session.record(self.iteration, result)

    def fail(self, reason: object) -> None:
        """A check has failed; user code may give whatever can be printed as the reason."""
        if self.iteration is not None and not self.iteration.failure:
            self.iteration.failure = str(reason) or NO_REASON


_NOWHERE = Scope()
scope_at_work: ContextVar[Scope] = ContextVar("scope", default=_NOWHERE)
"""The iteration whose code this is, in the tasks that it has started, too."""


class record:  # noqa: N801  # read as a verb: `async with record("query"):`
    """Records what happens within under a name, as if it was a request: `async with record("query"): …`.

    It is `ok`, unless an exception goes through it: a failed check for an `AssertionError` or a
    `RequestError`, a `timeout` for a `TimeoutError` or what is cancelled, and else an `exception`; the
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
        """What happens within has failed a check, for this reason."""
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


def explain_exception(error: BaseException) -> str:
    """What user code has raised, in one line."""
    if isinstance(error, AssertionError):
        return describe_assertion(error, _FOLDER)
    return describe_exception(error, _FOLDER)
