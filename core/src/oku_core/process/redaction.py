"""Keeps secrets out of texts that leave a process: log lines, notices, messages to users.

Every text that Oku has not written entirely itself goes through `redact`. Above all, these are errors of
libraries: they quote whole URLs, with a password before the host or a token in the query.
"""

import re

from oku_core.process.secret_texts import SecretTexts

MASK = "***"

LONGEST_REDACTED = 1 << 18
"""The rest of a longer text is left out; in characters."""

# A search that began with the scheme would read on from each letter of a text without a URL: quadratic time.
_AFTER_SCHEME = re.compile(r"://([^\s\"'<>`]*[^\s\"'<>`,;])")
"""A comma or semicolon that follows a URL in a sentence is not a part of the URL."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:@\[\]]*)(:\d+)?")

_hidden = SecretTexts()


def hide(*values: str) -> None:
    """Hide these values, in whatever form, in every redacted text, from now on until the process ends."""
    global _hidden  # noqa: PLW0603  # values must be hidden wherever this process logs
    hidden = _hidden.secrets.union(filter(None, values))
    if hidden != _hidden.secrets:
        _hidden = SecretTexts(hidden)


def redact_beginning(text: str, *, queries: bool = True) -> tuple[str, str]:
    """Redact a text that goes on behind its end, where a hidden value may be cut in two.

    Args:
        text: the text to redact.
        queries: whether queries are masked.

    Returns:
        what can be shown of it, and the rest, in which a hidden value may begin.
    """
    masked = _hidden.replace(text, MASK)
    end = _hidden.find_unfinished(masked)
    return redact(masked[:end], queries=queries), masked[end:]


def redact(text: str, *, queries: bool = True, words: bool = False) -> str:
    """Mask the user, the password and the query of each URL in a text, and the values passed to `hide`.

    If it is unclear where a password ends, because it should have been percent-encoded, too much is masked
    rather than too little. A text is redacted before it is cut: nobody finds half a value.

    Args:
        text: the text to redact; of a longer one than `LONGEST_REDACTED`, the beginning is returned.
        queries: whether queries are masked.
        words: whether hidden values that are too short to be looked for anywhere are masked as words.
    """
    is_long = len(text) > LONGEST_REDACTED
    shown = _hidden.replace(text[:LONGEST_REDACTED], MASK)
    if is_long:
        shown = shown[: _hidden.find_unfinished(shown)]
    if words:
        shown = _hidden.replace_words(shown, MASK)
    end = len(shown.rstrip(",;")) if is_long else -1

    def redact_url(url: re.Match[str]) -> str:
        # The cut may be within the password of a URL.
        return f"://{MASK if url.end() == end else _redact_rest(url[1], queries=queries)}"

    return _AFTER_SCHEME.sub(redact_url, shown)


def _redact_rest(rest: str, *, queries: bool) -> str:
    before, at, after = rest.rpartition("@")
    if at:
        # A password that was not encoded may contain any character that would end a host.
        if queries and "?" in before:
            return MASK
        rest = f"{MASK}@{after}"
    elif queries and not _HOST.fullmatch(re.split(r"[/?#]", rest, maxsplit=1)[0]):
        return MASK  # the URL was cut off, perhaps within a password
    head, mark, _ = rest.partition("?")
    return f"{head}{mark}{MASK}" if mark and queries else rest
