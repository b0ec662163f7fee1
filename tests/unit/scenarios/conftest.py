"""User code is loaded into the process of the tests; what that changes is taken back after each of them."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _imports_as_before() -> Iterator[None]:
    """The path, its hooks and the modules of Python as they were."""
    path, hooks, modules = sys.path[:], sys.path_hooks[:], dict(sys.modules)
    yield
    sys.path[:], sys.path_hooks[:] = path, hooks
    for name in sys.modules.keys() - modules:
        del sys.modules[name]
