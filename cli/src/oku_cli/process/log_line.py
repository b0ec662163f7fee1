"""Formats a record of `logging` as one line: as text for people, or as JSON for programs.

Both have the time, the level, a sentence, and the context that the call gives as `extra`. An error with its
traceback is one field of the JSON, and follows the line of the text. Neither shows anything that may be a
secret, whoever wrote it.
"""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from oku_cli.terminal.printable import UNPRINTABLE, escape_json
from oku_core.process.redaction import redact

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
        """Return the line of a record, and those of its traceback."""
        context = _list_context(record) | {"logger": record.name}
        words = [
            _format_time(record.created),
            f"{record.levelname.lower():<8}",
            _escape(_join_lines(redact(record.getMessage()))),
            *(f"{name}={_quote(str(value))}" for name, value in context.items()),
        ]
        return "\n".join([" ".join(words), *map(_escape, _format_error(self, record).splitlines())])


def _list_context(record: logging.LogRecord) -> dict[str, Any]:
    """Collect what was given as `extra`, without Celery's dictionary of a whole task."""
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
