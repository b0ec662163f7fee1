"""The message that gives leases to one worker.

It travels as JSON over the broker, and may be lost, delayed, duplicated or forged. A worker
accepts only leases addressed to its own process, and each of them once.
"""

import secrets

import msgspec

from oku_core.accounting.index_ranges import IndexRanges, Range
from oku_core.messaging.hook import build_spec_key
from oku_core.messaging.share import Share
from oku_core.schedule.wave import ActivePeriod, Wave
from oku_core.spec.spec import Spec

MOST_RANGES = 10_000
"""The most ranges that one lease may have."""
MOST_LEASES = 1_000
"""The most leases that one worker may have at a time."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Ranges of a run, given to one process of one worker, once.

    Attributes:
        id: the id of this lease alone; ranges that are given out again get a new id.
        run: the id of the run.
        ranges: the ranges `[start, stop)`, as `IndexRanges` takes them.
        limit: the first position that the worker must not take yet; the coordinator raises it (`Control`).
        wave: of an open run, the wave that all the ranges lie in; they are coordinates of one of its lanes.
            None in closed runs.
        lane: that lane.
    """

    id: str
    run: str
    ranges: list[Range]
    limit: int
    wave: Wave | None = None
    lane: int = 0

    def build_ranges(self) -> IndexRanges:
        """The ranges; `ValueError` if they are not in rising order and disjoint."""
        return IndexRanges(self.ranges)


class LeaseBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Leases of one run for one process of one worker.

    Attributes:
        run: the id of the run.
        incarnation: the process that they are for; every other one drops the message.
        leases: the leases, in the order in which to begin them.
        start_by: the Unix time, by the worker's clock, after which the message is stale: the worker gives the
            leases back unbegun.
        period: when the run was started or resumed last; None for runs without a schedule and without a limit
            of time.
        spec: the spec of the requests, including the URLs to send them to; None for a run whose spec the
            worker has reported as known (`Progress.specs`).
        setup: which attempt at the setup of its scenario the run goes by; 0 without one.
        setup_data: the return value of that attempt, as JSON; it comes with the spec.
        tickets: the permission to fetch each file that the run uses, by its digest.
        share: the worker's share of the run.
    """

    run: str
    incarnation: str
    leases: list[Lease]
    start_by: float
    period: ActivePeriod | None = None
    spec: Spec | None = None
    setup: int = 0
    setup_data: str = "null"
    tickets: dict[str, str] = {}
    share: Share | None = None

    @property
    def spec_key(self) -> str:
        """What a worker names the run by once it knows its spec."""
        return build_spec_key(self.run, self.setup)


def build_lease_id(run: str, number: int) -> str:
    """Build the id of the `number`th lease of a run; its last part is random."""
    return f"{run}.{number:09d}.{secrets.token_hex(4)}"


def read_lease_number(lease: str) -> int:
    """Read the number of a lease from its id; 0 if `build_lease_id` has not built the id."""
    number = lease.split(".")[-2:-1]
    return int(number[0]) if number and number[0].isdecimal() else 0


def read_lease_run(lease: str) -> str:
    """Read the run of a lease from its id; empty if `build_lease_id` has not built the id."""
    run, _, rest = lease.partition(".")
    return run if rest.count(".") == 1 else ""
