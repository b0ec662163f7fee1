"""What an import finds, before it is written as a spec: requests, faults, and text to be meant literally."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oku_core.spec.values.template import escape_literally


class NeededCredential(NamedTuple):
    """A secret that a request needs and the import does not contain.

    Attributes:
        place: the header that has it; empty for the query.
        before: the text before it in the value of the header, or the name of the parameter.
        name: its name.
    """

    place: str
    before: str
    name: str


@dataclass(frozen=True, kw_only=True)
class ImportedRequest:
    """One kind of request. Its texts come from others and contain no placeholders of a spec.

    Attributes:
        url: the whole URL.
        method: the HTTP method.
        headers: names and values, in order.
        body: the content to send; None for nothing.
        credentials: what a person has to add.
        name: what the import calls it; empty for method and path.
        weight: how often it occurs.
        statuses: the ones that count as ok; empty for 2xx.
        notes: what a reader of the spec has to know, one line each.
    """

    url: str
    method: str = "GET"
    headers: Sequence[tuple[str, str]] = ()
    body: str | None = None
    credentials: Sequence[NeededCredential] = ()
    name: str = ""
    weight: int = 1
    statuses: Sequence[int] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class ImportedSpec:
    """The parts of an imported spec.

    Attributes:
        source: its origin, such as `curl`.
        requests: at least one.
        settings: further keys of the spec.
        base: the common start of URLs; empty for the origin of most of them.
        notes: omissions and things to do, one line each.
    """

    source: str
    requests: Sequence[ImportedRequest]
    settings: Mapping[str, Any] = field(default_factory=dict)
    base: str = ""
    notes: Sequence[str] = ()


_PARTS = re.compile(r"(\{(?:i|(?:env|file|literal):[^{}]*)\})")
_MOST_NAMED = 5


class LiteralText:
    """Escapes texts, and remembers where."""

    def __init__(self) -> None:
        self._places: dict[str, None] = {}

    def write(self, text: str, place: str) -> str:
        """A text of a header or a body.

        Args:
            text: as it is to be sent.
            place: where it is, for people.
        """
        written = escape_literally(text)
        if written != text:
            self._places[place] = None
        return written

    def write_url(self, text: str) -> str:
        """A part of a URL; braces without a meaning are percent-encoded, as a spec has them."""
        parts = _PARTS.split(text)
        parts[::2] = map(encode_braces, parts[::2])
        parts[1::2] = [self.write(part, "URLs") for part in parts[1::2]]
        return "".join(parts).replace(" ", "%20").replace("|", "%7C")

    def describe(self) -> Iterator[str]:
        """Note in one line where text was escaped; nothing if none was."""
        if not self._places:
            return
        what = "Text that looks like a placeholder is sent literally, because {literal:…} means {…}"
        yield f"{what}: in {name_some([*self._places])}."


def split_origin(url: str) -> str:
    """Scheme, user, host and port of a URL, which may have placeholders of a spec."""
    scheme, mark, rest = url.partition("://")
    return scheme.lower() + mark + re.split("[/?#]", rest, maxsplit=1)[0]


def name_some(names: Sequence[str]) -> str:
    """The first few of many names, and how many more there are."""
    more = f" and {rest} more" if (rest := len(names) - _MOST_NAMED) > 0 else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def encode_braces(text: str) -> str:
    """A part of a URL without braces."""
    return text.replace("{", "%7B").replace("}", "%7D")
