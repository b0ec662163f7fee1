"""Keeps secrets out of texts that leave a process: log lines, notices, messages to users.

Every text that Oku has not written entirely itself goes through `redact`. Above all, these are errors of
libraries: they quote whole URLs, with a password before the host or a token in the query. Known secrets are
found in every form that code usually gives them: plain, quoted, encoded, in lines.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from string import ascii_letters, digits
from urllib.parse import quote, quote_plus

SHORTEST_PART = 4
"""A shorter secret, or line of one, occurs in any text by chance."""
_ESCAPED_HEX = re.compile("%[0-9A-F]{2}")  # own text: what `quote` has written
_NEVER_QUOTED = frozenset(f"{ascii_letters}{digits}_-")
_MARKS = frozenset("%+&\\")
"""A text without them has nothing that is quoted."""
_BASE64_BYTES = 3
_BEFORE = (0, 2, 3)
"""How many characters of Base64 depend on the text before, by the number of bytes in its last group."""
_AFTER = (0, 3, 2)
"""How many depend on the text behind, padding included, by the number of bytes in the last group."""


class SecretTexts:
    """Some secrets, in all their forms.

    Args:
        secrets: none of them empty.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets = frozenset(secrets)
        forms = {form for secret in self.secrets for form in _list_forms(secret)}
        # The longest is replaced first, because it may contain a shorter one.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._patterns = [_build_pattern(text) for text in _list_quotable(self.secrets)]
        self._words = _build_words(self.secrets)

    def replace(self, text: str, mask: str) -> str:
        """A text with the mask in place of each secret."""
        for form in self._forms:
            text = text.replace(form, mask)
        if not _MARKS.isdisjoint(text):
            for pattern in self._patterns:
                text = pattern.sub(mask, text)
        return text

    def replace_words(self, text: str, mask: str) -> str:
        """A text with the mask in place of each secret that is too short for `replace` and stands alone."""
        return text if self._words is None else self._words.sub(mask, text)

    def find_unfinished(self, text: str) -> int:
        """Where a secret begins that goes on behind the end of a text; its length if none does."""
        places = (_find_unfinished(form, text) for form in self._forms)
        return min(places, default=len(text))


def _list_forms(secret: str) -> Iterator[str]:
    for text in (secret, *_list_lines(secret)):
        if len(text) >= SHORTEST_PART:
            quoted = {text, *_list_quoted(text)}
            yield from quoted
            yield from chain.from_iterable(map(_list_quoted, quoted))  # such as JSON in a URL
            yield from _list_encoded(text.encode(errors="surrogateescape"))
            yield text.lower()  # as the host of a URL


def _list_lines(secret: str) -> Iterator[str]:
    yield " ".join(secret.split())
    yield from map(str.strip, secret.splitlines())


def _list_quoted(text: str) -> Iterator[str]:
    """As URLs, Python, JSON, HTML, and readers that take UTF-8 for Latin-1 write a text."""
    content = text.encode(errors="surrogateescape")
    for escaped in (quote(content, safe=""), quote(content), quote_plus(content)):
        yield escaped
        yield _ESCAPED_HEX.sub(lambda found: found[0].lower(), escaped)
    both_quotes = "'\""  # with them, Python escapes the single one
    yield from (repr(text)[1:-1], repr(text + both_quotes)[1:-4], ascii(text)[1:-1], repr(content)[2:-1])
    for is_ascii in (False, True):
        yield json.dumps(text, ensure_ascii=is_ascii)[1:-1]
    yield html.escape(text)
    yield content.decode("latin-1")


def _list_encoded(content: bytes) -> Iterator[str]:
    """In hexadecimal digits, and in Base64, alone and within something longer, such as user and password."""
    yield from (content.hex(), content.hex().upper())
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(content).decode()
        for before in range(_BASE64_BYTES):
            encoded = encode(bytes(before) + content).decode()
            after = _AFTER[(before + len(content)) % _BASE64_BYTES]
            yield encoded[_BEFORE[before] : len(encoded) - after]


def _list_quotable(secrets: Iterable[str]) -> list[str]:
    """The texts of secrets of which writers quote different characters; the longest is the first."""
    lines = set(chain.from_iterable(map(_list_lines, secrets)))
    escaped = {form for line in lines for form in (line, json.dumps(line)[1:-1])}
    found = (text for text in escaped if len(text) >= SHORTEST_PART and not _NEVER_QUOTED.issuperset(text))
    return sorted(found, key=lambda text: (-len(text), text))


def _build_pattern(text: str) -> re.Pattern[str]:
    """A pattern of a text with any of its characters quoted: clients quote different ones in a URL."""
    return re.compile("".join(map(_match_quoted, text)))


def _match_quoted(char: str) -> str:
    if char in _NEVER_QUOTED:
        return char
    content = char.encode(errors="surrogateescape")
    ways = ["".join(f"%(?:25)?(?i:{byte:02x})" for byte in content)]  # a URL may be within another one
    ways += [rf"\\{{0,3}}{re.escape(char)}", re.escape(html.escape(char))]
    if char == " ":
        ways.append(r"\+|%2[Bb]")
    return f"(?:{'|'.join(ways)})"


def _build_words(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern of short secrets that stand alone."""
    short = {secret for secret in secrets if len(secret) < SHORTEST_PART}
    forms = short | {quote(secret, safe="") for secret in short}
    words = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None


def _find_unfinished(form: str, text: str) -> int:
    place = max(0, len(text) - len(form) + 1)
    while (place := text.find(form[0], place)) >= 0:
        if form.startswith(text[place:]):
            return place
        place += 1
    return len(text)


MASK = "***"

LONGEST_REDACTED = 1 << 18
"""The rest of a longer text is left out; in characters."""

# A search that began with the scheme would read on from each letter of a text without a URL: quadratic time.
_AFTER_SCHEME = re.compile(r"://([^\s\"'<>`]*[^\s\"'<>`,;])")
"""A comma or semicolon that follows a URL in a sentence is not a part of the URL."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:@\[\]]*)(:\d+)?")

_hidden = SecretTexts()


def hide(*values: str) -> None:
    """Hide these values, in any encoding, in every redacted text, from now on until the process ends."""
    global _hidden  # noqa: PLW0603  # values must be hidden wherever this process logs
    hidden = _hidden.secrets.union(filter(None, values))
    if hidden != _hidden.secrets:
        _hidden = SecretTexts(hidden)


def redact_beginning(text: str, *, queries: bool = True) -> tuple[str, str]:
    """Redact a text that goes on behind its end, where a hidden value may be cut in two.

    Returns:
        the part that can be shown, and the rest, in which a hidden value may begin.
    """
    masked = _hidden.replace(text, MASK)
    end = _hidden.find_unfinished(masked)
    return redact(masked[:end], queries=queries), masked[end:]


def redact(text: str, *, queries: bool = True, words: bool = False) -> str:
    """Mask the user, the password and the query of each URL in a text, and the values passed to `hide`.

    If it is unclear where a password ends, because it should have been percent-encoded, too much is masked
    rather than too little. A text is redacted before it is cut, so that no half of a value remains.

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
