"""How properties are tried, and which tests begin first."""

import pytest
from hypothesis import HealthCheck, settings

# On a busy machine neither an example nor its making has a time limit.
settings.register_profile("oku", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("oku")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take long: if one began last, all cores but one would wait for it."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
