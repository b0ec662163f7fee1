"""Has `oku` run in Python's UTF-8 mode, whatever the locale is; only what a terminal shows depends on that.

Without it, the names of files and the words of a command line are not what spec files call them, and what is
written to a file depends on who runs the command. Python takes the mode by itself in the locales C and POSIX.
"""

import os
import sys
from contextlib import suppress

OPTION = "-X", "utf8"
"""What starts Python so."""
_ENCODING = "oku-encoding"
"""The option that says what the terminal reads; CPython passes on those that it does not know."""


def enter_utf8_mode() -> None:
    """Become the same command in UTF-8 mode, unless that makes no difference."""
    if sys.getfilesystemencoding() == "utf-8" or not sys.executable:
        return
    encoding = getattr(sys.stdout or sys.stderr, "encoding", None) or "utf-8"
    with suppress(OSError):  # as it is, most still works
        os.execv(  # noqa: S606  # no shell is wanted
            sys.executable, [sys.executable, *OPTION, "-X", f"{_ENCODING}={encoding}", *sys.orig_argv[1:]]
        )


def find_terminal_encoding() -> str | None:
    """The encoding of the terminal; None if it is that of the streams."""
    encoding = sys._xoptions.get(_ENCODING)  # noqa: SLF001  # it is documented
    return encoding if isinstance(encoding, str) else None
