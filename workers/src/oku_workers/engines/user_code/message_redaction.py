"""Redacts the texts of a host, so that nothing behind this shows a secret, whatever user code has written.

The host redacts them, too, before it cuts them; but user code can write to its socket itself.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from oku_core.process.redaction import redact
from oku_core.user_code.messages import Leaving, Refused, Report, Returned

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
