"""The iteration in which user code runs, as the code in it sees it: requests and checks count there."""

from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from oku.host_session import HostSession, Iteration, RequestResult
from oku.sandbox.user_module import describe_assertion, describe_exception

_FOLDER = Path.cwd()
"""Of the user code: a host begins in it."""
NO_REASON = "a check has failed"
"""The reason of a check that says none."""
GIVEN_UP = "given up by the scenario"
"""The reason of a request that was cancelled."""


class OpenCall(Protocol):
    """A request that code has made and not yet awaited."""

    method: str

    def find_place(self) -> tuple[str, int]:
        """The file and the line that made it."""
        ...


class Scope:
    """An iteration as the code in it sees it.

    Args:
        session: counts; None where nothing is counted.
        iteration: which one; None outside of any.

    Attributes:
        is_cut: whether it is being cut off: what it has not ended is not counted.
        calls: of its code, those that were not awaited, and those that are tasks and have not ended.
    """

    __slots__ = ("_session", "calls", "is_cut", "iteration")

    def __init__(self, session: HostSession | None = None, iteration: Iteration | None = None) -> None:
        self._session = session
        self.iteration = iteration
        self.is_cut = False
        self.calls: set[OpenCall] = set()

    def record(self, result: RequestResult) -> None:
        """Count a result; one that is not ok makes the iteration fail."""
        if result.outcome and self.iteration is not None and not self.iteration.failure:
            self.iteration.failure = f"{result.name}: {result.reason}"
        if self._session is not None and not self.is_cut:
            self._session.record(self.iteration, result)

    def fail(self, reason: object) -> None:
        """Record that a check has failed; user code may give any object as the reason."""
        if self.iteration is not None and not self.iteration.failure:
            self.iteration.failure = str(reason) or NO_REASON


_NOWHERE = Scope()
scope_at_work: ContextVar[Scope] = ContextVar("scope", default=_NOWHERE)
"""The iteration whose code this is, in the tasks that it has started, too."""


def explain_exception(error: BaseException) -> str:
    """What user code has raised, in one line."""
    if isinstance(error, AssertionError):
        return describe_assertion(error, _FOLDER)
    return describe_exception(error, _FOLDER)
