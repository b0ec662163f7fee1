"""The hooks of a scenario, which one worker calls for a whole run: their attempts and results.

A hook is called anew when the worker that had it is lost, so each call has a number, its attempt. A report of
another attempt than the newest one is void.
"""

import msgspec

from oku_core.json_reader import JsonError, decode_json
from oku_core.spec.spec import Hook

HOOK_LIMIT_S = 600.0
"""How long a hook may take."""
MOST_RESULT_BYTES = 1 << 20
"""The longest result of `setup`, as JSON: every worker gets it."""
LONGEST_HOOK_ERROR, LONGEST_HOOK_TRACEBACK = 300, 4_000
"""The longest error, and the longest traceback, in characters."""


class HookAttempt(msgspec.Struct, frozen=True, array_like=True):
    """One call of a hook.

    Attributes:
        run: whose scenario it is.
        hook: which hook.
        number: rises with each attempt at this hook of the run, from 1.
    """

    run: str
    hook: Hook
    number: int

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.hook} of run {self.run} (attempt {self.number})"


class HookReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an attempt; the worker repeats it until the coordinator drops the attempt.

    Attributes:
        attempt: which one.
        value: the hook's return value, as JSON; it may be a secret, and no log or report shows it.
        error: why it failed, in one line; empty if it did not.
        traceback: where it failed.
        is_lost: whether its process ended without an answer, so that another attempt may fare better; `error`
            describes it.
    """

    attempt: HookAttempt
    value: str = "null"
    error: str = ""
    traceback: str = ""
    is_lost: bool = False

    def find_fault(self) -> str | None:
        """Return the fault of a received report; None if it is valid."""
        if len(self.value.encode(errors="replace")) > MOST_RESULT_BYTES:
            return f"a hook returned more than {MOST_RESULT_BYTES} bytes"
        if len(self.error) > LONGEST_HOOK_ERROR or not self.error.isprintable():
            return f"the error of a hook is not one line of up to {LONGEST_HOOK_ERROR} printable characters"
        if len(self.traceback) > LONGEST_HOOK_TRACEBACK:
            return f"the traceback of a hook has more than {LONGEST_HOOK_TRACEBACK} characters"
        try:
            decode_json(self.value)
        except JsonError as error:
            return f"a hook returned what cannot be read: {error}"
        return None


class SetupData(msgspec.Struct, frozen=True):
    """What `setup` returned, for those who carry out iterations; the ledger stores it in clear text.

    Attributes:
        attempt: the number of the attempt that returned it; 0 if the run has no setup.
        value: as JSON.
    """

    attempt: int = 0
    value: str = "null"


NO_SETUP = SetupData()


def build_spec_key(run: str, setup_attempt: int) -> str:
    """What a worker names a run by whose spec it knows: with another setup it does not know all of it."""
    return f"{run}#{setup_attempt}" if setup_attempt else run
