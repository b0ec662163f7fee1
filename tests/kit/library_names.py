"""The names that files of user code may have although they belong to Python or to what is installed here."""

import importlib.metadata
import sys

_OURS = frozenset({"oku", "locust"})
"""What user code imports by these names is never a file of its own."""


def list_library_names() -> list[str]:
    """All of them, sorted, but for `__future__`, which means something to the language itself."""
    found = {*sys.stdlib_module_names, *importlib.metadata.packages_distributions()} - _OURS - {"__future__"}
    return sorted(name for name in found if name.isidentifier())
