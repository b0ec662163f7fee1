"""How far a worker may go in its open leases: the allowance is spent on them in the order of its feed."""

from collections.abc import Iterable

from oku_coordinator.ledger.storage.records import LeaseRecord


def raise_limits(leases: Iterable[LeaseRecord], allowance: int) -> dict[str, int]:
    """The limits that rise, by lease, so that a worker may take `allowance` positions more.

    No limit falls, so the worker may have been allowed more before; that counts as spent, too.

    Args:
        leases: the open leases of one process of a worker, in the order in which it begins them.
        allowance: how many positions it may take.
    """
    raised: dict[str, int] = {}
    for lease in leases:
        limit = min(lease.end, max(lease.limit, lease.done + max(0, allowance)))
        allowance -= limit - lease.done
        if limit > lease.limit:
            raised[lease.id] = limit
    return raised
