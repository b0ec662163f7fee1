"""Reads the load of a run out of the spec in its history, as far as this version of Oku understands it."""

from collections.abc import Mapping
from typing import Any

from oku_core.spec.parser import Source, SpecError, parse_spec
from oku_core.spec.spec import Spec

_KEYS = (
    "requests", "rate", "duration", "stages", "arrivals", "late", "warm-up", "max-rate", "concurrency",
)  # fmt: skip

_USER_CODE_KEYS = ("engine", "scenario", "users")


def read_load(spec: Mapping[str, Any]) -> Spec | None:
    """Build a spec that has the load of another, and defaults for all else; None if it is not understood."""
    keys = (*_KEYS, *_USER_CODE_KEYS) if "scenario" in spec else _KEYS
    load = {key: spec[key] for key in keys if key in spec}
    # The default of `requests` depends on the target.
    target = {"url": "http://target/"} if "url" in spec else {}
    try:
        return parse_spec(Source("spec", load | target))
    except SpecError:
        return None
