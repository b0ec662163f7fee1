"""What a case reads of the summary of a run, whichever version wrote it."""

import msgspec


class WorkerShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker has accounted for."""

    name: str
    requests: int


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a run."""

    run: str
    state: str
    requests: int
    accounted: int
    resent_at_most: int
    outcomes: dict[str, int]
    workers: list[WorkerShare]
