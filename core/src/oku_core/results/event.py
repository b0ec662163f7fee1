"""Events of a run, which the ledger keeps and Loki receives."""

from enum import StrEnum

import msgspec

from oku_core.accounting.run_state import RunState


class EventType(StrEnum):
    """The kind of an event."""

    STATE = "state"
    """The run has entered a state."""
    COORDINATOR_STARTED = "coordinator_started"
    """A coordinator has started and finds the run active."""
    TURN_GIVEN = "turn_given"
    """The run could not begin in time, and went to the end of the queue."""
    WORKERS_MISSING = "workers_missing"
    """The run began with fewer workers than it had asked for."""
    WORKER_JOINED = "worker_joined"
    WORKER_LEFT = "worker_left"
    WORKER_LOST = "worker_lost"
    WORKER_BARRED = "worker_barred"
    """A worker lacks something that the spec asks for, and gets none of the run."""
    WORKER_UNCONFINED = "worker_unconfined"
    """A worker is to confine user code, but its kernel has no Landlock."""
    HOOK_BEGUN = "hook_begun"
    """A worker calls `setup` or `teardown` of the scenario."""
    HOOK_ENDED = "hook_ended"
    """It has returned or failed, or is to be called again."""
    HOST_ENDED = "host_ended"
    """A process of user code ended unexpectedly; its iterations are given back."""
    LEASE_EXPIRED = "lease_expired"
    """A lease expired."""
    TARGET_GONE = "target_gone"
    """Nothing has been ok for a while after something was."""
    TARGET_BACK = "target_back"
    """Something is ok again."""
    CLOCK_SET = "clock_set"
    """The coordinator's clock was set forward or back."""
    THRESHOLD_LOST = "threshold_lost"
    """A threshold cannot hold any more."""
    VALIDITY = "validity"
    """The run came to rest with this flag."""
    LINES_DROPPED = "lines_dropped"
    """The outbox was full, and lines were dropped."""
    LINES_REFUSED = "lines_refused"
    """Loki has refused lines for good."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened, by the coordinator's clock, and the same as a sentence.

    `worker` and `lease` are those that the event is about, `start` and `stop` the bounds of that lease.
    `state` is what the run entered, and `flag` a flag of validity with which it came to rest.
    """

    at: float
    type: EventType
    text: str
    worker: str | None = None
    lease: str | None = None
    start: int | None = None
    stop: int | None = None
    requests: int | None = None
    reason: str | None = None
    state: RunState | None = None
    flag: str | None = None
