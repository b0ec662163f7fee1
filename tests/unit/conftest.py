"""What holds for all unit tests: how properties are tried, what begins first, and what none inherits."""

import gc

import pytest
from hypothesis import HealthCheck, settings

from oku_core.process import redaction
from oku_core.process.redaction import SecretTexts

# On a busy machine neither an example nor its making has a time limit. CI asks for the profile `full`.
settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)
settings.load_profile("quick")


def pytest_runtest_setup() -> None:
    """A process hides values until it ends, and cuts a long text wherever one of them may begin."""
    vars(redaction)["_hidden"] = SecretTexts()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the heavy tests: if one began last, all cores but one would wait for it."""
    items.sort(key=lambda item: item.get_closest_marker("heavy") is None)


def pytest_collection_finish() -> None:
    """Keep what is loaded by now out of garbage collections: each would walk through 12,000 tests."""
    gc.collect()
    gc.freeze()
