"""What an iteration of a scenario counts as, by how its coroutine has ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from oku.http.response import RequestError
from oku.sandbox.user_module import describe_assertion, describe_exception, format_traceback
from oku_core.accounting.outcome import EXCEPTION, FAILED_CHECK, OK


class End(NamedTuple):
    """How an iteration has ended.

    Attributes:
        outcome: a place in `OUTCOMES`.
        reason: why it is not ok, in one line.
        traceback: of the exception that ended it.
    """

    outcome: int
    reason: str = ""
    traceback: str = ""


def judge_return(failure: str) -> End:
    """Of one that has come to its end; `failure` is the first request or check of it that failed."""
    return End(FAILED_CHECK, failure) if failure else End(OK)


def judge_exception(error: BaseException, failure: str, folder: Path) -> End:
    """Of one that an exception has ended.

    Requests that fail and assertions are checks, also if a task group has collected them. Everything else is
    an exception.

    Args:
        error: the exception.
        failure: the first request or check of it that failed; empty if none did.
        folder: where the files of the user code are.
    """
    first, *others = _list_leaves(error)
    if all(isinstance(leaf, RequestError | AssertionError) for leaf in (first, *others)):
        if failure:
            return End(FAILED_CHECK, failure)
        if isinstance(first, AssertionError):
            return End(FAILED_CHECK, describe_assertion(first, folder))
        return End(FAILED_CHECK, str(first))
    return End(EXCEPTION, describe_exception(error, folder), format_traceback(error, folder))


def _list_leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _list_leaves(each)
    else:
        yield error
