"""What the process of user code sees of its worker, and how much it may take.

Anyone may have written user code. It gets only the variables of the worker that the operator names: it cannot
read others from the memory of the worker either. It leaves no process behind.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

EVERYTHING = "*"
"""Among the names of variables: all but those of Oku."""
_OURS = ("OKU_", "CELERY_")
"""They hold keys and the URL of the broker."""
_HARMLESS = re.compile(
    r"HOME|LANG|LANGUAGE|LC_[A-Z]+|LOGNAME|PATH|SSL_CERT_DIR|SSL_CERT_FILE|TMPDIR|TZ|USER"
    # Without these some interpreters find neither their libraries nor themselves.
    r"|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|PYTHONHOME|PYTHONPATH"
)


@dataclass(frozen=True)
class Isolation:
    """What hosts get and may take.

    Attributes:
        environment: their environment variables.
        memory_bytes: how much memory each of their processes may hold; 0 without a limit.
        niceness: how much they give way to their worker where both want the same processor: 0 to 19.
        adopts: whether this process adopts what they leave behind, and ends it (`adopt_orphans`).
        is_confined: whether they give up all files but their own.
        is_unconfinable: whether they should, but the kernel has no Landlock.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: choose_environment(os.environ))
    memory_bytes: int = 0
    niceness: int = 0
    adopts: bool = False
    is_confined: bool = False
    is_unconfinable: bool = False


def choose_environment(ours: Mapping[str, str], names: Sequence[str] = ()) -> dict[str, str]:
    """The variables that user code sees.

    Args:
        ours: those of this process.
        names: of those that it sees besides what says where things are and how times are written;
            `EVERYTHING` is all but those of Oku.
    """
    return {
        name: value
        for name, value in ours.items()
        if not name.startswith(_OURS) and (EVERYTHING in names or name in names or _HARMLESS.fullmatch(name))
    }
