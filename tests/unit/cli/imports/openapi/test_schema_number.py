from typing import Any

from oku_cli.imports.openapi.schema_number import make_number


def test_a_number_is_near_to_one_and_within_its_bounds() -> None:
    """Bounds are exclusive by a flag or by themselves; what is no finite number is no bound."""
    cases: list[tuple[dict[str, Any], bool, float | None]] = [
        ({"minimum": 1.5}, True, 2),
        ({"minimum": 1.5, "multipleOf": 0}, True, 2),
        ({"exclusiveMaximum": 1}, True, 0),
        ({"maximum": 1, "exclusiveMaximum": True}, True, 0),
        ({"minimum": -20, "maximum": -3, "multipleOf": 5}, True, -5),
        ({"minimum": 6, "maximum": 7, "multipleOf": 5}, True, None),
        ({"exclusiveMinimum": 2, "exclusiveMaximum": 3}, True, None),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, False, 0.5),
        ({"minimum": 1.04, "multipleOf": 0.1}, False, 1.1),
        ({"minimum": 10**300, "multipleOf": 7}, True, -(-(10**300) // 7) * 7),
        ({"minimum": float("inf"), "multipleOf": 0, "maximum": "9"}, False, 1),
    ]
    wrong = [
        (schema, made)
        for schema, is_whole, number in cases
        if (made := make_number(schema, is_whole=is_whole)) != number
    ]
    assert wrong == []
