"""The environment of programs that Oku starts: nothing is loaded from the folder in which `oku` was called.

`oku` itself runs in Python's UTF-8 mode if the locale is ASCII.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from oku_core.process.prctl import DEBUGGABLE

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


PYTHON = (sys.executable, "-P", *FLAGS)
"""Starts Python so that it does not look for modules in its working directory."""
_OWN = ("OKU_", "CELERY_")
"""Variables that a user sets for an `oku coordinator`, an `oku worker` or a Celery of their own."""
_KEPT = ("OKU_NO_EXTENSIONS", DEBUGGABLE)
"""Variables of Oku that are meant for every process that Oku starts, too."""
_OTHERS = ("DJANGO_SETTINGS_MODULE",)
"""With this variable Celery takes the working directory for a Django project, and imports from it."""
_SEARCH_PATHS = ("PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""An empty entry in these, as in `PYTHONPATH=:/x`, means the working directory."""
_FILES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF")


def build_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of a child that works in another folder than this process."""
    environment = {name: value for name, value in drop_own(given).items() if name not in _OTHERS}
    for name in _SEARCH_PATHS:
        if (value := environment.pop(name, None)) and (kept := _keep_absolute(value)):
            environment[name] = kept
    return environment | {name: str(Path(given[name]).absolute()) for name in _FILES if given.get(name)}


def drop_own(given: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of another program, which has no use for settings, tokens and keys of Oku."""
    return {name: value for name, value in given.items() if name in _KEPT or not name.startswith(_OWN)}


def find_program(name: str) -> str | None:
    """Find a program on the PATH; entries relative to the working directory do not count."""
    return shutil.which(name, path=_keep_absolute(os.environ.get("PATH", os.defpath)))


def _keep_absolute(search_path: str) -> str:
    return os.pathsep.join(entry for entry in search_path.split(os.pathsep) if Path(entry).is_absolute())
