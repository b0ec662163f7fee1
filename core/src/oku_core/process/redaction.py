"""Keeps secrets out of texts that leave a process: lines of logs, notices, messages to users.

Every text that others have written in part goes through `redact`, an error of a library above all: these
name URLs as they were asked for, with a password before the host and with a token in the query.
"""

import re

MASK = "***"

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<rest>[^\s\"'<>`]*[^\s\"'<>`,;])")
"""What follows a URL in a sentence is not a part of it."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:@\[\]]*)(:\d+)?")


_SHORTEST_HIDDEN = 4
"""Shorter values stand in every text, and are no secrets."""
_hidden: frozenset[str] = frozenset()


def hide(*values: str) -> None:
    """From now on, for as long as this process lives, no redacted text shows these values."""
    global _hidden  # noqa: PLW0603  # whatever is logged anywhere must know of them
    _hidden |= {value for value in values if len(value) >= _SHORTEST_HIDDEN}


def redact(text: str, *, queries: bool = True) -> str:
    """A text in which URLs have no user and no password, and no query unless `queries` is false.

    Values that were hidden are not in it either.

    Where it is not clear what is a password, as with one that should have been percent-encoded, more is
    hidden rather than less.
    """
    # The longest first, for one may be a part of another.
    for value in sorted(_hidden, key=len, reverse=True):
        text = text.replace(value, MASK)
    return _URL.sub(lambda url: url["scheme"] + _redact_rest(url["rest"], queries=queries), text)


def _redact_rest(rest: str, *, queries: bool) -> str:
    before, at, after = rest.rpartition("@")
    if at:
        # A password may have all signs in it that end a host, if somebody forgot to encode them.
        if queries and "?" in before:
            return MASK
        rest = f"{MASK}@{after}"
    elif queries and not _HOST.fullmatch(re.split(r"[/?#]", rest, maxsplit=1)[0]):
        return MASK  # of a URL that was cut
    head, mark, _ = rest.partition("?")
    return f"{head}{mark}{MASK}" if mark and queries else rest
