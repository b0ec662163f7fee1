"""The functions of a scenario file that Oku calls, and what each may be called with."""

from collections.abc import Mapping

from oku_core.spec.spec import Hook

SCENARIO = "scenario"
"""The coroutine function that each iteration calls."""
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    SCENARIO: ("index", "http", "row", "setup_data"),
    Hook.SETUP: ("http",),
    Hook.TEARDOWN: ("http", "setup_data"),
}
"""By function, the arguments that it may have; it gets those that it names."""

LIBRARIES = frozenset({"oku", "locust"})
"""The packages that user code is written for: an import of these names never finds a file of user code."""
