"""Whether this process may use the compiled parts of Oku, or has Python do the same."""

import os

NO_EXTENSIONS = "OKU_NO_EXTENSIONS"
"""The variable that, unless it is empty, says no; `hatch_build.py` asks it, too."""


def may_use_extensions() -> bool:
    """Whether nobody has said no."""
    return not os.environ.get(NO_EXTENSIONS)
