"""The extension of the workers, for tests of what is compiled."""

from collections.abc import Callable

import pytest
from tests.kit.requirement import miss

from oku_workers.engines.httptools import exchange
from oku_workers.speedups.extension import IS_COMPILED

if IS_COMPILED:
    from oku_workers.speedups import _speedups

Clock = Callable[[], int]
"""Gives nanoseconds, as `time.monotonic_ns` does."""


def require_extension() -> None:
    """Skip the test where there is none; in CI fail it."""
    if not IS_COMPILED:
        miss("the extension is not compiled: there was no C compiler, or no Python.h, when Oku was set up")


class _CompiledClock:
    """The clock of what is compiled, as an attribute that can be patched."""

    @property
    def monotonic_ns(self) -> Clock | None:
        """None is that of the system, which it is before any test."""
        return None

    @monotonic_ns.setter
    def monotonic_ns(self, clock: Clock | None) -> None:
        _speedups.use_clock(clock)


def set_exchange_clock(patch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Have the httptools engine time answers by a clock of the test, compiled or not."""
    patch.setattr(exchange, "monotonic_ns", clock)
    if IS_COMPILED:
        patch.setattr(_CompiledClock(), "monotonic_ns", clock)
