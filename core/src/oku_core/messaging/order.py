"""Orders from the coordinator: to all workers to stop leases and how often to speak, to one about its leases.

Orders may be lost, so the coordinator repeats them. Others may replay them later, so each order says what it
applies to, and does nothing when it comes again.
"""

import msgspec


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop the leases of a run early; for all workers.

    Attributes:
        run: the run whose leases are stopped.
        up_to: the number of the last lease of the run to stop. Later leases go on, so an order from before a
            pause does not stop anything after it.
        grace_s: how many seconds their requests in flight may take to finish.
    """

    run: str
    up_to: int
    grace_s: float


class HeartbeatInterval(msgspec.Struct, frozen=True, kw_only=True, tag="heartbeat_interval"):
    """Send progress at this interval.

    Attributes:
        number: rises with each of these orders; an order whose number does not rise is outdated.
        interval_s: the time from one heartbeat to the next.
    """

    number: int
    interval_s: float


Order = Stop | HeartbeatInterval
