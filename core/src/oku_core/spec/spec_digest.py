"""The digest of a spec: equal for specs that ask for the same, however they are written.

Only keys that differ from their defaults count, so that a key that a newer Oku adds changes no digest. A file
of the run counts by its content.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from oku_core.spec.fields import FIELDS
from oku_core.spec.parser import build_mapping
from oku_core.spec.spec import Spec

_DEFAULTS = Spec()


def digest_spec(spec: Spec) -> str:
    """The SHA-256, in hexadecimal."""
    canonical = json.dumps(build_canonical_mapping(spec), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def build_canonical_mapping(spec: Spec) -> Mapping[str, Any]:
    """The keys of a spec that differ from their defaults, each with one way to write its value."""
    mapping = build_mapping(spec)
    return {
        field.key: mapping[field.key]
        for field in FIELDS
        if field.key in mapping and getattr(spec, field.attribute) != getattr(_DEFAULTS, field.attribute)
    }


def list_differences(one: Spec, other: Spec) -> list[str]:
    """The keys in which two specs differ that have different digests."""
    first, second = build_canonical_mapping(one), build_canonical_mapping(other)
    return [field.key for field in FIELDS if first.get(field.key) != second.get(field.key)]
