"""How many files, connections among them, this process may have open."""

import logging
import resource

_log = logging.getLogger(__name__)

MOST = 1 << 20
"""More is not asked for, and a system without a limit counts as allowing so many."""


def read_open_files() -> int:
    """How many it may have open now, the soft limit."""
    return _bound(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_open_files() -> int:
    """Raise the soft limit, 1024 on most systems, as far as allowed, for children, too; what it is then.

    A limit is never lowered. A refusal is logged: some systems allow less than the hard limit says, and then
    the half of it is tried, and so on.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    present, wanted = _bound(soft), _bound(hard)
    while wanted > present:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError) as error:
            _log.warning("a limit of %d open files is refused: %s", wanted, error)
            wanted //= 2
        else:
            return wanted
    return present


def _bound(limit: int) -> int:
    return MOST if limit == resource.RLIM_INFINITY else min(limit, MOST)
