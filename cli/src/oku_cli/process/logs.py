"""Sets up the logs of Oku's processes: one line for each event on standard error, and nothing else there.

Everything goes through `logging`, so that libraries, warnings and the error that ends a process have the
same form as Oku's own lines.
"""

import logging
import sys
import threading
from typing import TYPE_CHECKING

from oku_cli.process.log_line import JsonFormatter, TextFormatter
from oku_cli.terminal.printable import write_error
from oku_core.process.redaction import redact

if TYPE_CHECKING:
    from types import TracebackType

FORMATS = ("auto", "text", "json")
LEVELS = {
    "debug": (logging.DEBUG, logging.INFO),
    "info": (logging.INFO, logging.WARNING),
    "warning": (logging.WARNING, logging.WARNING),
    "error": (logging.ERROR, logging.ERROR),
}
"""The levels of Oku and of libraries, whose debug lines hold whole messages with the headers of a spec."""
_PACKAGES = ("oku_core", "oku_coordinator", "oku_workers", "oku_server", "oku_cli")

_log = logging.getLogger(__name__)


def set_format(name: str) -> None:
    """Write everything that is logged in one of `FORMATS`, including warnings and uncaught errors."""
    handler = logging.StreamHandler()
    is_text = name == "text" or (name == "auto" and sys.stderr.isatty())
    handler.setFormatter(TextFormatter() if is_text else JsonFormatter())
    logging.basicConfig(handlers=[handler])
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_end
    threading.excepthook = _log_end_of_thread
    sys.unraisablehook = _log_unraisable


def set_level(name: str) -> None:
    """Log records of one of `LEVELS` and above."""
    own, libraries = LEVELS[name]
    logging.getLogger().setLevel(libraries)
    for package in _PACKAGES:
        logging.getLogger(package).setLevel(own)


def add_context(**context: str) -> None:
    """Add context, such as the name of a worker, to all lines of this process."""

    def add(record: logging.LogRecord) -> bool:
        record.__dict__.update(context | record.__dict__)
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(add)


def report_mistake(message: str) -> None:
    """Report a mistake of the user in one line: as JSON if the log is JSON, otherwise as a command does."""
    if any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers):
        _log.error("%s", message)
    else:
        write_error(redact(message, queries=False))


def _log_end(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    _log.critical("ended by %s: %s", kind.__name__, error, exc_info=(kind, error, trace))


def _log_end_of_thread(end: threading.ExceptHookArgs) -> None:
    if end.exc_type is SystemExit:
        return
    name = end.thread.name if end.thread else "?"
    error = end.exc_value or end.exc_type()
    _log.critical(
        "thread %s ended by %s: %s", name, end.exc_type.__name__, error,
        exc_info=(end.exc_type, error, end.exc_traceback),
    )  # fmt: skip


def _log_unraisable(found: "sys.UnraisableHookArgs") -> None:
    error = found.exc_value or found.exc_type()
    _log.error(
        "%s %r: %s: %s", found.err_msg or "error ignored in", found.object, found.exc_type.__name__, error,
        exc_info=(found.exc_type, error, found.exc_traceback),
    )  # fmt: skip
