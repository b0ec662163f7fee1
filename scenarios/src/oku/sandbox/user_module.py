"""Loads the file of user code, and says in one line why it cannot be loaded."""

import traceback
from pathlib import Path
from types import ModuleType

from oku.sandbox.file_confinement import CONFINED_NOTE, is_refusal
from oku.sandbox.user_imports import UserImports
from oku_core.process.redaction import redact

_LONGEST_TEXT = 1_000
"""The longest text of an exception in a reason."""


class LoadError(Exception):
    """User code cannot be loaded; the message is one line for its author."""


def load_module(folder: Path, file: str) -> ModuleType:
    """Import a file as a module that finds modules beside it and in the folder of all user code.

    Args:
        folder: where the files of user code are.
        file: the path of the file from there.

    Raises:
        LoadError: it raises, or names something that is not there.
    """
    path = folder / file
    imports = UserImports(list(dict.fromkeys((path.parent, folder))))
    imports.install()
    try:
        return imports.load(path)
    except BaseException as error:
        raise LoadError(describe_exception(error, folder)) from error


def describe_exception(error: BaseException, folder: Path) -> str:
    """An exception in one line, with the last place in user code: `ValueError: no (a.py:3 in scenario)`.

    Args:
        error: the exception.
        folder: where the files of user code are.
    """
    text = " ".join(f"{type(error).__name__}: {_read_text(error)}".split()).rstrip(": ")
    text = text.replace(f"{folder}/", "")  # each host has its own: a reason is the same for all of them
    place = find_place(error, folder)
    text = f"{text} ({place})" if place else text
    return f"{text}: user code is confined" if is_refusal(error) else text


def describe_assertion(error: AssertionError, folder: Path) -> str:
    """A failed assertion in one line: its text, or the line of code if it has none, and where that is."""
    text = " ".join(_read_text(error).split())
    if not text:
        lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.line]
        text = lines[-1] if lines else "assertion failed"
    place = find_place(error, folder)
    return f"{text} ({place})" if place else text


def _read_text(error: BaseException) -> str:
    """The text of an exception; empty if it fails to make one, as user code may have written it."""
    try:
        return redact(str(error))[:_LONGEST_TEXT]
    except Exception:  # noqa: BLE001  # user code may raise anything
        return ""


def find_place(error: BaseException, folder: Path) -> str:
    """The innermost frame of user code in a traceback: `a.py:3 in scenario`; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(folder):
            return f"{path.relative_to(folder)}:{frame.lineno} in {frame.name}"
    return ""


def format_traceback(error: BaseException, folder: Path) -> str:
    """The traceback from the first frame of user code on, as Python prints it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next(
        (place for place, each in enumerate(frames) if Path(each.filename).is_relative_to(folder)), 0
    )
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames[first:])]
    lines.append(redact("".join(traceback.format_exception_only(error)))[:_LONGEST_TEXT])
    if is_refusal(error):
        lines.append(f"{CONFINED_NOTE}\n")
    return "".join(lines).replace(f"{folder}/", "")
