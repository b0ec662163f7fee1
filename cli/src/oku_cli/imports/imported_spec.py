"""What an import finds: requests, and what could not be taken over, before it is written as a spec."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class NeededCredential(NamedTuple):
    """A secret that a request needs and the import does not contain.

    Attributes:
        place: the header that has it; empty for the query.
        before: what comes before it in the value of the header, or the name of the parameter.
        name: what it is called.
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
        body: what is sent; None for nothing.
        credentials: what a person has to add.
        name: what the import calls it; empty for method and path.
        weight: how often it occurs.
        statuses: those that count as ok; empty for 200.
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
    """What becomes a spec.

    Attributes:
        source: what it is made from, such as `curl`.
        requests: at least one.
        settings: further keys of the spec.
        base: what URLs begin with; empty for the origin of most of them.
        notes: what was left out and what is to be done, one line each.
    """

    source: str
    requests: Sequence[ImportedRequest]
    settings: Mapping[str, Any] = field(default_factory=dict)
    base: str = ""
    notes: Sequence[str] = ()
