"""Orders from the coordinator, to all workers or to one.

Orders to all contain which leases to stop, the intervals of messages, and the time; an order to one worker is
about its own leases. Orders may be lost, so the coordinator repeats them. Others may replay them later, so
each order names the objects that it applies to, and does nothing when it comes again.
"""

import msgspec

from oku_core.messaging.hook import HookAttempt, SetupData
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.share import Share
from oku_core.spec.spec import Spec


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop the leases of a run early; for all workers.

    Attributes:
        run: the run whose leases are stopped.
        up_to: the number of the last lease of the run to stop. Later leases go on, so an order from before a
            pause does not stop anything after it.
        grace_s: how many seconds their requests in flight may take to finish.
        at: the Unix time, by the coordinator's clock, at which to take no further position; None for at once.
    """

    run: str
    up_to: int
    grace_s: float
    at: float | None = None


class UserCode(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker needs to load the user code of a run.

    Attributes:
        spec: of the run.
        setup: what its setup returned.
    """

    spec: Spec
    setup: SetupData


class Fetch(msgspec.Struct, frozen=True, kw_only=True, tag="fetch"):
    """Fetch the files of a run that is about to begin, or goes on, and load its user code; for one process.

    It is repeated as long as the worker belongs to the run. An older one that comes again does no harm: what
    it names is fetched once, its tickets expire, and user code is loaded only while no other is at work.

    Attributes:
        incarnation: the process that it is for; every other one drops the message.
        run: the run.
        files: the files, as a spec names them (`FileRef`).
        tickets: what each is fetched with, by its digest.
        code: the user code; None if the worker has loaded it, or is not to load it yet.
    """

    incarnation: str
    run: str
    files: list[str]
    tickets: dict[str, str]
    code: UserCode | None = None


class CallHook(msgspec.Struct, frozen=True, kw_only=True, tag="call_hook"):
    """Call a hook of the scenario of a run; for one process of one worker.

    It is repeated until the worker confirms it. An attempt that the worker has had is not made again. Nor is
    one whose message is stale: its run may be over.

    Attributes:
        incarnation: the process that it is for; every other one drops the message.
        attempt: which hook, and the number of this call.
        spec: of the run.
        tickets: the permission to fetch each of its files, by its digest.
        setup_data: the return value of `setup`, as JSON, for the teardown.
        limit_s: how many seconds it may take.
        start_by: the Unix time, by the worker's clock, after which the message is stale.
    """

    incarnation: str
    attempt: HookAttempt
    spec: Spec
    tickets: dict[str, str] = {}
    setup_data: str = "null"
    limit_s: float
    start_by: float


class DropHooks(msgspec.Struct, frozen=True, kw_only=True, tag="drop_hooks"):
    """Forget attempts at hooks: their results are known, or no longer wanted; for one process.

    Attributes:
        incarnation: the process that it is for; every other one drops the message.
        attempts: those still running are ended, and none is reported any more.
    """

    incarnation: str
    attempts: list[HookAttempt]


class ClockNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The clock of the coordinator, which its schedules count by.

    Attributes:
        kernel: whose monotonic clock it is carried by, as `fetch_kernel_id` names it. A process that shares
            it needs only the offset.
        offset_ns: Unix time minus that monotonic clock, in nanoseconds.
        host: the address to ask for that monotonic clock, by UDP; empty without one.
        port: the port to ask at.
    """

    kernel: str
    offset_ns: int
    host: str = ""
    port: int = 0


class FilesAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where workers fetch the files of runs, by HTTP.

    Attributes:
        host: a name or an address.
        port: its TCP port.
    """

    host: str
    port: int

    @property
    def url(self) -> str:
        """The base URL, before the path of a file."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class Intervals(msgspec.Struct, frozen=True, kw_only=True, tag="intervals"):
    """Send heartbeats and checkpoints at these intervals; for all workers.

    It also contains facts that all workers need: the coordinator's clock, where files are, which run has its
    turn.

    Attributes:
        number: rises with each of these orders; an order whose number does not rise is outdated.
        heartbeat_s: the time from one heartbeat to the next.
        checkpoint_s: the time from one checkpoint of a lease to the next.
        clock: the coordinator's clock; None while it looks for its predecessor's.
        files: where files of runs are fetched.
        run: the run that has its turn; empty without one.
    """

    number: int
    heartbeat_s: float
    checkpoint_s: float
    clock: ClockNotice | None = None
    files: FilesAddress | None = None
    run: str = ""


class Control(msgspec.Struct, frozen=True, kw_only=True, tag="control"):
    """Decisions of the ledger about leases of one process of one worker, by their ids.

    Attributes:
        incarnation: the process that it is for; every other one drops the message.
        confirmed: the highest sequence number of a checkpoint that the ledger has dealt with. A final
            checkpoint that is confirmed is not repeated any more, and its lease can be forgotten.
        limits: the first position that must not be taken yet. A limit never falls: a lower one is outdated.
        ends: where the lease should end. The worker ends it there, or at the first position that it has not
            taken, and answers with a checkpoint. An end never rises: a higher one is outdated.
        share: the worker's share of the run that has its turn.
        may_leave: whether this process, which has announced that it leaves, has no open lease: nothing is on
            its way to it.
        renew: whether this process is to leave for a fresh one, because the run whose user code it has run is
            over.
    """

    incarnation: str
    confirmed: dict[str, int] = {}
    limits: dict[str, int] = {}
    ends: dict[str, int] = {}
    share: Share | None = None
    may_leave: bool = False
    renew: bool = False


Order = Stop | Fetch | Intervals | Control | CallHook | DropHooks
Outbound = LeaseBatch | Order
"""What the coordinator sends to workers."""
