"""Whether the compiled extension is here, and may be used.

It is compiled when Oku is built, if there is a C compiler; wheels of a platform have it compiled. Each part
has its like in Python, in the module that chooses between the two. Nothing depends on the choice but the time
of a request.
"""

import os
from collections.abc import Callable

try:
    if os.environ.get("OKU_NO_EXTENSIONS"):  # `hatch_build.py` asks it, too
        raise ImportError
    from oku_workers.speedups import _speedups
except ImportError:
    IS_COMPILED = False
else:
    IS_COMPILED = True

write: Callable[[int, bytes], int] = _speedups.write if IS_COMPILED else os.write
"""Writes to a socket that does not block, as `os.write` does; compiled, the GIL is kept meanwhile."""
