"""The extension of the httptools engine, for tests of what is compiled."""

from tests.kit.requirement import miss

from oku_workers.engines.httptools import speedups


def require_extension() -> None:
    """Skip the test where there is none; in CI fail it."""
    if not speedups.IS_COMPILED:
        miss("_speedups.c is not compiled: there was no C compiler, or no Python.h, when Oku was set up")
