"""What the engine does for each request and is much faster compiled; else Python does the same.

`_speedups.c` is compiled when Oku is built, if there is a C compiler; wheels of a platform have it compiled.
Nothing depends on that but the time that a request takes.
"""

import os
from collections.abc import Callable, Sequence

from oku_core.http_client.limits import LONGEST_HEAD_BYTES
from oku_core.process.extensions import may_use_extensions
from oku_workers.engines.httptools import body_size
from oku_workers.engines.httptools.body_size import Line, Measure

try:
    if not may_use_extensions():
        raise ImportError
    from oku_workers.engines.httptools import _speedups
except ImportError:
    IS_COMPILED = False
else:
    IS_COMPILED = True


def build_compiled_measure(shape: Sequence[Line]) -> Measure:
    """The same as `body_size.build_measure`, compiled."""
    return _speedups.Pattern(tuple(shape), LONGEST_HEAD_BYTES).measure


build_measure: Callable[[Sequence[Line]], Measure] = (
    build_compiled_measure if IS_COMPILED else body_size.build_measure
)
"""Builds the measure of answers of one shape."""
write: Callable[[int, bytes], int] = _speedups.write if IS_COMPILED else os.write
"""Writes to a socket that does not block, as `os.write` does."""
