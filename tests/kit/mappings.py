"""Mappings that are merged as Helm merges values: key by key, all the way down."""

from collections.abc import Mapping
from typing import Any


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the values of a change, which replace all but mappings."""
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged
