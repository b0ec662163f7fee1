"""The messages of a host, and what user code prints: redacted, so that nothing behind this shows a secret.

The host redacts its messages, too, before it cuts them; but user code can write to its socket itself.
"""

import asyncio
import codecs
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from oku_core.process.redaction import redact, redact_beginning
from oku_core.user_code.messages import Leaving, Refused, Report, Returned

_log = logging.getLogger(__name__)

_MOST_LINE_BYTES = 4096
_MOST_LINES_PER_S = 200
"""User code that prints more has the rest dropped: a log is not for results."""
_TEXTS: Mapping[type, tuple[str, ...]] = {
    Leaving: ("text",),
    Refused: ("reason",),
    Report: ("texts", "tracebacks"),
    # What a hook has returned is for iterations, which need it as it is.
    Returned: ("error", "traceback"),
}
"""The fields of messages that hold texts of user code."""


def redact_message(message: object) -> object:
    """A message of a host, with its texts redacted."""
    fields = ((name, getattr(message, name)) for name in _TEXTS.get(type(message), ()))
    redacted = {name: _redact(value) for name, value in fields if value}
    return msgspec.structs.replace(message, **redacted) if redacted else message  # type: ignore[type-var]


def _redact(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value, words=True)
    if isinstance(value, list):
        return list(map(_redact, value))
    return {key: _redact(text) for key, text in value.items()}


PrintLine = Callable[[str], None]
"""Takes a line that user code has printed."""


async def log_output(output: int, print_line: PrintLine) -> None:
    """Pass on what user code prints, line by line, and put it into the log, unless it is too much."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MOST_LINE_BYTES)
    with os.fdopen(output, "rb", buffering=0) as pipe:
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        second, lines, rest = 0.0, 0, ""
        try:
            while True:
                try:
                    line, rest = rest + decode(await reader.readuntil()), ""
                except asyncio.LimitOverrunError as error:
                    part = await reader.readexactly(error.consumed or _MOST_LINE_BYTES)
                    line, rest = redact_beginning(rest + decode(part))
                except asyncio.IncompleteReadError as error:
                    if text := _clean(rest + decode(error.partial, final=True)):
                        print_line(text)
                        _log_line(text)
                    return
                if not (text := _clean(line)):
                    continue
                print_line(text)
                if (now := loop.time()) >= second + 1:
                    second, lines = now, 0
                lines += 1
                if lines <= _MOST_LINES_PER_S:
                    _log_line(text)
        finally:
            transport.close()


def _clean(line: str) -> str:
    """A line, redacted and printable; empty if there is nothing on it."""
    text = redact(line, words=True).rstrip()
    return "".join(char if char.isprintable() else " " for char in text)


def _log_line(text: str) -> None:
    _log.info("user code: %s", text)
