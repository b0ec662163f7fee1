"""Follows the references of an OpenAPI document, within a budget of entries that are read."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from oku_core.digits import parse_digits
from oku_core.errors import format_value
from oku_core.json_reader import DEEPEST

MOST_ENTRIES = 20_000_000
"""The most entries read of all parts, which takes a few seconds; a part counts each time it is referenced."""
ENTRIES_OF_PART = 10
"""The cost of each part in addition to its own entries and its children's."""
_MOST_REFERENCES = 20


class References:
    """Resolves parts of a document.

    Attributes:
        missing: the references that lead nowhere, in order.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.missing: dict[str, None] = {}
        self._document = document
        self._found: dict[str, Any] = {}
        self._costs: dict[int, int] = {}
        self._entries = 0

    def resolve(self, value: Any) -> Mapping[str, Any]:
        """Follow the references of a part to what it stands for; an empty mapping if that is none."""
        for _ in range(_MOST_REFERENCES):
            if not isinstance(value, Mapping):
                self.count(ENTRIES_OF_PART)
                return {}
            self._spend(value)
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            if reference not in self._found:
                self._found[reference] = self._find(reference)
            value = self._found[reference]
            if value is None:
                self.missing[reference] = None
        raise ValueError("its references go round in a circle")

    def count(self, entries: int) -> None:
        """Add to the entries read so far; raise `ValueError` if there are too many."""
        self._entries += entries
        if self._entries > MOST_ENTRIES:
            raise ValueError(f"its references and examples stand for more than {MOST_ENTRIES:,} entries")

    def _find(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            raise ValueError(f"{format_value(reference)} is in another file; put all into one document first")
        value: Any = self._document
        for word in reference[2:].split("/", DEEPEST):
            value = _take(value, unquote(word).replace("~1", "/").replace("~0", "~"))
        return value

    def _spend(self, part: Mapping[str, Any]) -> None:
        cost = self._costs.get(id(part))
        if cost is None:
            inner = sum(len(each) for each in part.values() if isinstance(each, Mapping | list))
            cost = self._costs[id(part)] = ENTRIES_OF_PART + len(part) + inner
        self.count(cost)


def _take(value: Any, key: str) -> Any:
    """The part of a mapping or a list that a word of a JSON pointer names (RFC 6901)."""
    if isinstance(value, Mapping):
        return value.get(key)
    place = parse_digits(key, len(value) - 1) if isinstance(value, list) and value else None
    return None if place is None else value[place]
