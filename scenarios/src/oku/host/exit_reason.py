"""The last message of a host that an exception ends unexpectedly."""

from oku_core.process.redaction import redact
from oku_core.user_code.messages import Leaving

_MOST_CHARS = 120


def explain_leaving(error: BaseException) -> Leaving:
    """Say why a host ends, by the exception that ends it."""
    if isinstance(error, MemoryError):
        return Leaving("it reached its memory limit and could not go on (MemoryError)", is_memory=True)
    if isinstance(error, SystemExit):
        return Leaving(f"it called sys.exit({_shorten(redact(repr(error.code)))})")
    said = " ".join(redact(str(error)).split())
    return Leaving(f"it failed: {type(error).__name__}{f': {_shorten(said)}' if said else ''}")


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 2]} …"
