import importlib.util
from types import ModuleType

import pytest
from tests.unit.chart.rendering import CHART


@pytest.fixture(scope="session")
def prove() -> ModuleType:
    """The script that the test's pod runs."""
    spec = importlib.util.spec_from_file_location("prove", CHART / "files" / "prove.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
