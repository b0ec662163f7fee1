"""Sets up the logs of Oku's processes: one line for each event on standard error, as text or as JSON."""

import json
import logging
import re
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from oku_cli.terminal.printable import UNPRINTABLE, escape_json, write_error
from oku_core.process.redaction import redact

if TYPE_CHECKING:
    from types import TracebackType

_FIRST = ("run", "lease", "worker")
_OWN = {"time", "level", "logger", "message", "pid", "error"}
_NOT_CONTEXT = _OWN | {"asctime", "taskName"} | logging.makeLogRecord({}).__dict__.keys()
_PLAIN = re.compile(r'[^\s"=]+')


class JsonFormatter(logging.Formatter):
    """Formats a record as an object in one line of ASCII, which is the same in every encoding."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, Any] = {
            "time": _format_time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
            **_list_context(record),
            "pid": record.process,
        }
        if error := _format_error(self, record):
            line["error"] = error
        return escape_json(json.dumps(line).encode()).decode()


class TextFormatter(logging.Formatter):
    """Formats a record as time, level, sentence and context (`name=value`), without the process id.

    Foreign text, such as the path of a request, can neither begin a line nor move the cursor.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and the lines of its traceback."""
        context = _list_context(record) | {"logger": record.name}
        words = [
            _format_time(record.created),
            f"{record.levelname.lower():<8}",
            _escape(_join_lines(redact(record.getMessage()))),
            *(f"{name}={_quote(str(value))}" for name, value in context.items()),
        ]
        return "\n".join([" ".join(words), *map(_escape, _format_error(self, record).splitlines())])


def _list_context(record: logging.LogRecord) -> dict[str, Any]:
    """Collect the values of `extra`, without Celery's dictionary of a whole task."""
    context = {
        name: redact(value) if isinstance(value, str) else value
        for name, value in record.__dict__.items()
        if name not in _NOT_CONTEXT and isinstance(value, str | int | float)
    }
    return {name: context[name] for name in _FIRST if name in context} | context


def _format_time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _format_error(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    error = formatter.formatException(record.exc_info) if record.exc_info else ""
    return redact("\n".join(filter(None, (error, record.stack_info))))


def _join_lines(text: str) -> str:
    return " ".join(line for line in map(str.strip, text.split("\n")) if line)


def _escape(text: str) -> str:
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _quote(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and not UNPRINTABLE.search(text)
    return text if is_plain else _escape(json.dumps(text, ensure_ascii=False))


FORMATS = ("auto", "text", "json")
LEVELS = {
    "debug": (logging.DEBUG, logging.INFO),
    "info": (logging.INFO, logging.WARNING),
    "warning": (logging.WARNING, logging.WARNING),
    "error": (logging.ERROR, logging.ERROR),
}
"""The levels of Oku and of libraries, whose debug lines hold whole messages with the headers of a spec."""
PACKAGES = ("oku", "oku_cli", "oku_coordinator", "oku_core", "oku_server", "oku_workers")
"""The packages of Oku, whose loggers have the level of Oku."""

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
    for package in PACKAGES:
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
