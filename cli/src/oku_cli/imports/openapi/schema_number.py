"""Makes a number that fits a JSON schema."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any


def make_number(schema: Mapping[str, Any], *, is_whole: bool) -> int | float | None:
    """The number nearest to 1 that is a bound, or beside one; None if none of these is allowed.

    Args:
        schema: an exclusive bound is a flag (OpenAPI 3.0) or a number (3.1).
        is_whole: whether it has to be an integer.
    """
    multiple = _read(schema, "multipleOf")
    step = multiple if multiple and multiple > 0 else None
    if is_whole and (step is None or step.denominator > 1):
        step = Fraction(1)
    lows = [low for key in ("minimum", "exclusiveMinimum") if (low := _read(schema, key)) is not None]
    highs = [high for key in ("maximum", "exclusiveMaximum") if (high := _read(schema, key)) is not None]
    excluded = _list_excluded(schema)

    def is_allowed(number: Fraction) -> bool:
        is_within = all(number >= low for low in lows) and all(number <= high for high in highs)
        return is_within and number not in excluded

    near: list[Fraction] = []
    for bound in (Fraction(1), *lows, *highs):
        if step is None:
            near += [bound, bound - 1, bound + 1]
        else:
            near += [(bound // step + more) * step for more in (-1, 0, 1, 2)]
    if step is None and lows and highs:
        near.append((max(lows) + min(highs)) / 2)
    number = min(filter(is_allowed, near), key=lambda each: (abs(each - 1), each), default=None)
    if number is None:
        return None
    return int(number) if number.denominator == 1 else float(number)


def _list_excluded(schema: Mapping[str, Any]) -> list[Fraction | None]:
    """The bounds that are not allowed themselves."""
    pairs = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    return [
        _read(schema, bound if schema.get(exclusive) is True else exclusive) for bound, exclusive in pairs
    ]


def _read(schema: Mapping[str, Any], key: str) -> Fraction | None:
    value = schema.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(value) if isinstance(value, int) else Fraction(str(value))
