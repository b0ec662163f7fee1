"""The flags of curl, by their treatment: kept in the spec, ignored, or refused.

The names and meanings follow curl's manual (curl 8). A flag that changes the request and has no counterpart
in a spec is refused; one that only affects curl's handling of the answer is ignored.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LONG_BY_SHORT = {
    "X": "request", "H": "header", "d": "data", "u": "user", "b": "cookie", "A": "user-agent",
    "e": "referer", "G": "get", "k": "insecure", "L": "location", "x": "proxy", "m": "max-time",
    "I": "head", "s": "silent", "S": "show-error", "v": "verbose", "i": "include", "o": "output",
    "O": "remote-name", "w": "write-out", "f": "fail", "N": "no-buffer", "#": "progress-bar",
    "c": "cookie-jar", "E": "cert", "F": "form", "T": "upload-file", "U": "proxy-user", "g": "globoff",
    "D": "dump-header", "J": "remote-header-name", "K": "config", "n": "netrc", "0": "http1.0", "r": "range",
    "4": "ipv4", "6": "ipv6", "j": "junk-session-cookies",
}  # fmt: skip
WITH_VALUE = frozenset({
    "request", "header", "data", "data-raw", "data-binary", "data-ascii", "data-urlencode", "json", "user",
    "cookie", "user-agent", "referer", "proxy", "max-time", "url", "oauth2-bearer", "cacert", "cert", "key",
    "max-redirs", "range", "form", "form-string", "url-query",
})  # fmt: skip
"""Flags with a value that have a counterpart in a spec."""
VERSIONS = ("http1.1", "http2", "http2-prior-knowledge")
"""Flags that choose a version of HTTP; as with curl, the last one counts."""
SWITCHES = frozenset({
    "get", "insecure", "location", "head", "compressed", "globoff", "path-as-is", *VERSIONS,
})  # fmt: skip
"""Flags without a value that have a counterpart in a spec."""
_IGNORED_WITH_VALUE = frozenset({
    "output", "write-out", "cookie-jar", "dump-header", "connect-timeout", "retry", "retry-delay",
    "retry-max-time", "stderr", "trace", "trace-ascii", "limit-rate", "keepalive-time", "output-dir",
    "expect100-timeout", "speed-limit", "speed-time",
})  # fmt: skip
_IGNORED = frozenset({
    "silent", "show-error", "verbose", "include", "remote-name", "remote-name-all", "remote-header-name",
    "fail", "fail-with-body", "no-buffer", "progress-bar", "no-progress-meter", "http3",
    "ipv4", "ipv6", "tcp-nodelay", "create-dirs", "basic", "no-keepalive",
    "junk-session-cookies", "styled-output", "no-styled-output", "retry-all-errors", "no-sessionid",
    "no-alpn", "retry-connrefused",
})  # fmt: skip


class CurlFlag(NamedTuple):
    """A flag: its long name without dashes, and its value; a URL is the value of `url`."""

    name: str
    value: str = ""


def read_flags(words: Sequence[str]) -> tuple[list[CurlFlag], list[str]]:
    """Read the words of a command behind `curl`: the flags for the spec, and the ignored ones.

    Raises:
        ValueError: a flag is unknown, has no counterpart in a spec, or lacks its value.
    """
    taken: list[CurlFlag] = []
    ignored: list[str] = []
    for flag, is_ignored in _iter_flags(words):
        if is_ignored:
            ignored.append(f"--{flag.name}")
        else:
            taken.append(flag)
    return taken, list(dict.fromkeys(ignored))


def _iter_flags(words: Sequence[str]) -> Iterator[tuple[CurlFlag, bool]]:
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            yield from ((CurlFlag("url", url), False) for url in reversed(rest))
            return
        if not word.startswith("-") or word == "-":
            yield CurlFlag("url", word), False
        elif word.startswith("--"):
            yield _take(word.removeprefix("--"), word, rest)
        else:
            yield from _read_cluster(word[1:], rest)


def _read_cluster(letters: str, rest: list[str]) -> Iterator[tuple[CurlFlag, bool]]:
    """Flags of one letter behind one dash; a flag with a value takes the rest as its value."""
    for place, letter in enumerate(letters):
        name = _LONG_BY_SHORT.get(letter, letter)
        if (name in WITH_VALUE or name in _IGNORED_WITH_VALUE) and letters[place + 1 :]:
            yield CurlFlag(name, letters[place + 1 :]), name in _IGNORED_WITH_VALUE
            return
        yield _take(name, f"-{letter}", rest)


def _take(name: str, written: str, rest: list[str]) -> tuple[CurlFlag, bool]:
    if name in SWITCHES or name in _IGNORED:
        return CurlFlag(name), name in _IGNORED
    if name not in WITH_VALUE and name not in _IGNORED_WITH_VALUE:
        raise ValueError(f"{written}: a spec cannot say this")
    if not rest:
        raise ValueError(f"{written}: has no value")
    return CurlFlag(name, rest.pop()), name in _IGNORED_WITH_VALUE
