"""Runs tests with an extension that checks its memory: EXTENSION, and the arguments of pytest.

Run by test_speedups.py in a process of its own, which ends at the first byte that is used wrongly.
"""

import importlib.util
import sys

import pytest

MODULE = "oku_workers.speedups._speedups"


def load(path: str) -> None:
    """Have this extension imported from now on; nothing of Oku has been imported that has one."""
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[MODULE])


if __name__ == "__main__":
    extension, *arguments = sys.argv[1:]
    load(extension)
    from oku_workers.speedups import _speedups

    assert _speedups.__file__ == extension
    sys.exit(pytest.main(arguments))
