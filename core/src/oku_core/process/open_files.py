"""The limit of open files, which bounds the connections that this process can have."""

import logging
import resource

_log = logging.getLogger(__name__)

MOST = 1 << 20
"""The highest limit that is requested; a system without a limit counts as allowing this many."""


def read_open_files() -> int:
    """How many files this process may have open now: the soft limit."""
    return _bound(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_open_files() -> int:
    """Raise the soft limit, which is 1024 on most systems, as far as allowed, and return the new one.

    Child processes inherit it. The limit is never lowered. Some systems allow less than their hard limit:
    a refusal is logged, and half of the refused limit is tried next.
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
