"""Runs `oku` in Python's UTF-8 mode if the locale is ASCII.

Otherwise Python could not decode file names and command lines. In the locales C and POSIX it enters the mode
by itself, unless it is told not to. A locale with another encoding is taken at its word.
"""

import os
import sys
from contextlib import suppress

FLAGS = ("-X", "utf8") if sys.flags.utf8_mode else ()
"""The options that start Python in the mode of this process."""
_ENCODING = "oku-encoding"
"""The option with the encoding of the terminal; CPython passes on options that it does not know."""


def enter_utf8_mode() -> None:
    """Restart the same command in UTF-8 mode, if that is needed."""
    if sys.getfilesystemencoding() != "ascii" or not sys.executable:
        return
    encoding = getattr(sys.stdout or sys.stderr, "encoding", None) or "ascii"
    with suppress(OSError):  # most commands still work without it
        os.execv(  # noqa: S606  # no shell is wanted
            sys.executable,
            [sys.executable, "-X", "utf8", "-X", f"{_ENCODING}={encoding}", *sys.orig_argv[1:]],
        )


def find_terminal_encoding() -> str | None:
    """The encoding of the terminal; None if the standard streams have the same."""
    encoding = sys._xoptions.get(_ENCODING)  # noqa: SLF001  # it is documented
    return encoding if isinstance(encoding, str) else None
