"""Submits a run once for its key (`--once`): a run that has the key goes on, whoever began it, or is over."""

from asyncio import sleep
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from oku_cli.exit_code import ExitCode
from oku_cli.remote.client import Client, ConflictError
from oku_cli.remote.follow import show_end
from oku_cli.remote.outage import try_again
from oku_cli.remote.watch import Watch
from oku_cli.terminal.printable import write_error, write_note
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.spec.values.file_reference import FileClaim
from oku_core.summary.summary import Summary

_PAUSING_POLL_S = 0.2
_PAUSED_STATES = (RunState.PAUSING, RunState.PAUSED)


@dataclass(frozen=True)
class Submission:
    """What is submitted with a key.

    Attributes:
        values: the spec, as a mapping.
        claims: its files.
        key: the key.
    """

    values: Mapping[str, Any]
    claims: Sequence[FileClaim]
    key: str

    async def begin(self, client: Client) -> str:
        """Return the run with the key, submitted if there is none, and resumed if it is paused.

        With a key, all of this can be tried again while the coordinator does not answer.

        Raises:
            NotUploadedError: there is none, and a file of the spec is to be uploaded first.
            RunDeletedError: the run was deleted.
            UnreachableError: the coordinator does not answer for long.
        """
        return await try_again(partial(self._try_to_begin, client, KeyNotice(self.key)))

    async def _try_to_begin(self, client: Client, notice: "KeyNotice") -> str:
        submitted = await client.submit_once(self.values, self.claims, self.key)
        if not submitted.is_new:
            notice.report(submitted.run, submitted.state)
        if submitted.state in _PAUSED_STATES:
            await _resume(client, submitted.run)
        return submitted.run


async def _resume(client: Client, run: str) -> None:
    """Resume a run that is paused, or soon will be; another command may resume it at the same time."""
    while True:
        try:
            await client.resume(run)
        except ConflictError:
            if (await client.fetch_summary(run)).state not in _PAUSED_STATES:
                return
            await sleep(_PAUSING_POLL_S)
        else:
            return


class KeyNotice:
    """Says that a run has the key, and is not begun anew; each state of it once, however often it is found.

    Args:
        key: the key.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._reported: tuple[str, RunState] | None = None

    def report(self, run: str, state: RunState) -> None:
        """Say it of a run in a state."""
        if self._reported != (run, state):
            self._reported = run, state
            write_note(f"run {run} has the key {self._key} and is {state}")


def finish_deleted(summary: Summary, watch: Watch, reason: str) -> ExitCode:
    """Show how a run ended that was deleted since; it is not sent again, even if it had not ended."""
    if summary.state in FINAL_STATES:
        write_note(reason)
        return show_end(watch, summary)
    reason = f"{reason} before its end; it is not sent again, another run needs another key"
    write_error(reason)
    watch.write_reason(ExitCode.CUT_SHORT, reason)
    return ExitCode.CUT_SHORT
