"""What became of `setup` and `teardown` of a run."""

from enum import StrEnum

import msgspec

from oku_core.spec.spec import Hook


class HookState(StrEnum):
    """What becomes of a hook of a run."""

    OWED = "owed"
    """It is to be called."""
    BEGUN = "begun"
    """A worker calls it."""
    LOST = "lost"
    """The worker, or its process of user code, was lost while it did; it is to be called again."""
    DONE = "done"
    """It has returned, and that counts."""
    FAILED = "failed"
    """It has raised, or took too long, or was lost too often."""
    GIVEN_UP = "given_up"
    """Nobody waits for it any more."""


class HookSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A hook of a run.

    `calls` is how often it was begun: more than once if workers were lost in it. `took_s` is how long the
    call took that counts, None before its end; `error` and `traceback` say why it failed, or was lost.
    """

    hook: Hook
    state: HookState
    calls: int
    worker: str
    took_s: float | None = None
    error: str = ""
    traceback: str = ""
