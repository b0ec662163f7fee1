"""Finds the requests and coroutines that user code has forgotten to await, and where it made them.

A request that is not awaited is not sent, and of other coroutines Python only warns: without this module, an
iteration that did nothing would be ok.
"""

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from oku.http.scope import OpenCall, scope_at_work

_BEFORE, _BEHIND = "coroutine '", "' was never awaited"
"""Python's warning, around the qualified name of the coroutine."""


class UnawaitedError(Exception):
    """A hook has left a request behind that it did not await."""


def explain_unawaited(calls: Iterable[OpenCall], main: Path) -> str:
    """The reason of an iteration that leaves calls behind: `line 5: http.get(…) was not awaited`.

    Args:
        calls: those that were not awaited, and those that were made tasks and have not ended.
        main: the file of the scenario, whose lines need no name.

    Returns the reason for the first of them in the file; empty if there is none.
    """
    found = sorted((*call.find_place(), call.method.lower()) for call in calls)
    if not found:
        return ""
    file, line, method = next((each for each in found if Path(each[0]) == main), found[0])
    return _explain(Path(file), line, f"http.{method}", main)


def watch_coroutines(main: Path) -> None:
    """From now on, let a coroutine that Python finds was never awaited fail the iteration that drops it.

    Args:
        main: the file of the scenario.
    """
    show = warnings.showwarning

    def show_warning(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: object
    ) -> None:
        text, scope = str(message), scope_at_work.get()
        if not (text.startswith(_BEFORE) and text.endswith(_BEHIND)) or scope.iteration is None:
            show(message, category, filename, lineno, *rest)  # type: ignore[arg-type]  # passed on as it came
            return
        place = _find_user_code(sys._getframe(1), main.parent)  # noqa: SLF001  # the warning may name another file
        name = text.removeprefix(_BEFORE).removesuffix(_BEHIND).rpartition(".")[2]
        if place is not None:
            scope.fail(_explain(Path(place[0]), place[1], name, main))
        elif not scope.calls:  # which know their lines
            scope.fail(f"{name}(…) was not awaited")

    warnings.filterwarnings("always", f"{_BEFORE}.*{_BEHIND}", RuntimeWarning)
    warnings.showwarning = show_warning  # type: ignore[assignment]  # it takes the same


def _explain(file: Path, line: int, name: str, main: Path) -> str:
    where = "" if file == main else f"{file.name} "
    return f"{where}line {line}: {name}(…) was not awaited"


def _find_user_code(frame: FrameType | None, folder: Path) -> tuple[str, int] | None:
    """The innermost frame of user code; None if none is running, as when a function has returned."""
    while frame is not None:
        if Path(frame.f_code.co_filename).is_relative_to(folder):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None
