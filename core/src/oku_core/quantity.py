"""Counts, durations and sizes as people write them (`1M`, `10s`, `4KiB`), read into plain numbers.

Every reader takes what a flag (text) or a YAML or JSON file (a number or text) gives and raises
`ValueError` with a sentence that names the value; nobody else in Oku parses a quantity.
"""

import re
from collections.abc import Mapping

_COUNT_UNITS: Mapping[str, float] = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
_DURATION_UNITS: Mapping[str, float] = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "": 1, "s": 1, "m": 60, "h": 3600}
_SIZE_UNITS: Mapping[str, float] = {
    "": 1, "b": 1,
    "k": 1e3, "kb": 1e3, "kib": 2**10,
    "m": 1e6, "mb": 1e6, "mib": 2**20,
    "g": 1e9, "gb": 1e9, "gib": 2**30,
}  # fmt: skip
_QUANTITY = re.compile(r"([-+]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*([a-zA-Zµ]*)")


def parse_count(value: object) -> int:
    """A whole number: `1000000`, `1_000_000`, `1e6`, `1M`, `1.5k`."""
    number = _parse(value, _COUNT_UNITS, "a number such as 50000, 1_000_000, 1e6 or 1M")
    if number != int(number):
        raise ValueError(f"{value} is not a whole number")
    return int(number)


def parse_duration_s(value: object) -> float:
    """A duration in seconds: `10s`, `500ms`, `2m`, `1h`; a bare number is seconds."""
    return _parse(value, _DURATION_UNITS, "a duration such as 10s, 500ms or 2m")


def parse_size(value: object) -> int:
    """A size in bytes: `1000`, `4kB`, `4KiB`, `1MiB`."""
    return round(_parse(value, _SIZE_UNITS, "a size such as 1000, 4kB or 1MiB"))


def format_duration(seconds: float) -> str:
    """A duration for people, in two units at most: `850 ms`, `61.2 s`, `2 min 05 s`, `3 h 10 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60:02d} min"


def format_bytes(count: float) -> str:
    """A number of bytes for people, in decimal units: `13.0 MB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def _parse(value: object, units: Mapping[str, float], wanted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not {wanted}")  # noqa: TRY004  # wrong input, not a wrong call
    match = _QUANTITY.fullmatch(str(value).strip())
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{value} is not {wanted}")
    digits = match[1].replace("_", "")
    # An integer stays exact at any size: 2**53 + 1 has no float.
    number: float = int(digits) if digits.lstrip("+-").isdigit() else float(digits)
    return number * int(unit) if unit == int(unit) else number * unit
