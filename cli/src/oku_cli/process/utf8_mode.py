"""Has `oku` run in Python's UTF-8 mode where the locale knows nothing but ASCII.

Otherwise the names of files and the words of a command line are no text there. Python takes the mode by
itself in the locales C and POSIX, unless it is told not to. A locale with another encoding is right about its
machine.
"""

import os
import sys
from contextlib import suppress

FLAGS = ("-X", "utf8") if sys.flags.utf8_mode else ()
"""What starts Python in the mode of this process."""
_ENCODING = "oku-encoding"
"""The option that says what the terminal reads; CPython passes on those that it does not know."""


def enter_utf8_mode() -> None:
    """Become the same command in UTF-8 mode, if that is needed."""
    if sys.getfilesystemencoding() != "ascii" or not sys.executable:
        return
    encoding = getattr(sys.stdout or sys.stderr, "encoding", None) or "ascii"
    with suppress(OSError):  # as it is, most still works
        os.execv(  # noqa: S606  # no shell is wanted
            sys.executable,
            [sys.executable, "-X", "utf8", "-X", f"{_ENCODING}={encoding}", *sys.orig_argv[1:]],
        )


def find_terminal_encoding() -> str | None:
    """The encoding of the terminal; None if it is that of the streams."""
    encoding = sys._xoptions.get(_ENCODING)  # noqa: SLF001  # it is documented
    return encoding if isinstance(encoding, str) else None
