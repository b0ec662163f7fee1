"""Submits a run once for its key (`--once`): a run that has the key goes on, whoever began it, or is over."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oku_cli.exit_code import ExitCode
from oku_cli.remote.client import Client, ConflictError, Submitted, wait_before_retry
from oku_cli.remote.endpoint import UnreachableError
from oku_cli.remote.follow import show_end
from oku_cli.remote.watch import Watch
from oku_cli.terminal.printable import write_error, write_note
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.results.summary import Summary
from oku_core.spec.values.file_proof import FileClaim

_PATIENCE_S = 60.0
"""How long a coordinator may be away before the submission is given up; with a key it may be sent again."""
_PAUSING_LOOK_S = 0.2


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
        """Return the run with the key, submitted if there is none, and resumed if it is paused."""
        submitted = await self._submit(client)
        if not submitted.is_new:
            write_note(f"run {submitted.run} has the key {self.key} and is {submitted.state}")
        if submitted.state in (RunState.PAUSING, RunState.PAUSED):
            await _resume(client, submitted.run)
        return submitted.run

    async def _submit(self, client: Client) -> Submitted:
        until = asyncio.get_running_loop().time() + _PATIENCE_S
        while True:
            try:
                return await client.submit(self.values, self.claims, self.key)
            except UnreachableError:
                if asyncio.get_running_loop().time() > until:
                    raise
                await wait_before_retry()


async def _resume(client: Client, run: str) -> None:
    """Resume a run that is paused, or soon will be; another command may resume it at the same time."""
    while True:
        try:
            await client.resume(run)
        except ConflictError:
            if (await client.fetch_summary(run)).state not in (RunState.PAUSING, RunState.PAUSED):
                return
            await asyncio.sleep(_PAUSING_LOOK_S)
        else:
            return


def finish_deleted(summary: Summary, watch: Watch, reason: str) -> ExitCode:
    """Show how a run ended that was deleted since; it is not sent again, even if it had not ended."""
    if summary.state in FINAL_STATES:
        write_note(reason)
        return show_end(watch, summary)
    reason = f"{reason} before its end; it is not sent again, another run needs another key"
    write_error(reason)
    watch.write_reason(ExitCode.CUT_SHORT, reason)
    return ExitCode.CUT_SHORT
