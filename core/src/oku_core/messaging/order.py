"""What the coordinator tells all workers at once: to stop with leases, and how often to send progress.

Orders may be lost, so they are repeated; and they may be repeated by others, later, so that each says what it
holds for.
"""

import msgspec


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """End leases early.

    Attributes:
        run: of all its leases up to a number; None for those that are named.
        up_to: the number of the last lease of the run that had been cut. Those of later are not meant: an
            order of before a pause stops nothing after it.
        leases: single leases, by id.
        grace_s: how long their requests in flight may go on.
    """

    run: str | None
    up_to: int = 0
    leases: list[str] = []
    grace_s: float


class HeartbeatInterval(msgspec.Struct, frozen=True, kw_only=True, tag="heartbeat_interval"):
    """Send progress this often.

    Attributes:
        number: rises with each of these orders; one that does not is an old one.
        interval_s: the time from one heartbeat to the next.
    """

    number: int
    interval_s: float


Order = Stop | HeartbeatInterval
