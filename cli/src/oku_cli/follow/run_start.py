"""Begins a run: submits a spec, or resumes a run, and follows one at a coordinator until it rests.

With a key (`--once`), a run that has the key goes on, even if another command began it, or is over.
"""

import json
from asyncio import sleep
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from oku_cli.backends.client import BegunRun, Client, ConflictError, RunGoneError, UploadNeededError
from oku_cli.backends.coordinator_ref import CoordinatorRef
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import Follower, build_title, show_end
from oku_cli.follow.outage import try_again
from oku_cli.follow.upload import LocalFile, upload_files
from oku_cli.follow.watch import Watch
from oku_cli.process.interrupt import Interrupts
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_cli.terminal.printable import write_error, write_note
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.errors import UserError
from oku_core.spec.description import describe_load, describe_target
from oku_core.spec.parser import build_mapping
from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import PROOFS, FileClaim
from oku_core.summary.summary import Summary

_LARGEST_SPEC_BYTES = 1 << 20
_PAUSING_POLL_S = 0.2
_PAUSED_STATES = (RunState.PAUSING, RunState.PAUSED)


@dataclass(frozen=True, kw_only=True)
class RunStart:
    """Describes how a run begins.

    Args:
        name: the name of the run; empty if it has none.
        target: the target in words; empty if it is not known.
        load: the load in words; empty if it is not known.
        resumed: the run that is resumed; None for a new one.
        servers: the number of delay server processes that were asked for; None for any number.
        key: the key of the submission; None if the run has none.
    """

    send: Callable[[Client], Coroutine[Any, Any, BegunRun]]
    name: str = ""
    target: str = ""
    load: str = ""
    resumed: str | None = None
    servers: int | None = None
    files: Sequence[LocalFile] = ()
    key: str | None = None

    @classmethod
    def submit(
        cls, spec: Spec, files: Sequence[LocalFile] = (), key: str | None = None, *, is_own_key: bool = False
    ) -> Self:
        """Submit a run, unless one has the key; `UserError` if its spec is too large for a coordinator.

        No notice names a key that the command made for this run.
        """
        mapping, claims = build_mapping(spec), [file.claim for file in files]
        if len(json.dumps(mapping | {PROOFS: dict(claims)})) > _LARGEST_SPEC_BYTES:
            raise UserError(
                f"the spec has more than {_LARGEST_SPEC_BYTES >> 20} MiB as JSON, which is the most that a"
                f" coordinator takes; its body alone has {len(spec.body or '')} characters"
            )

        async def send(client: Client) -> BegunRun:
            if key is None:
                return await client.submit(mapping, claims)
            return await submit_once(client, mapping, claims, key, None if is_own_key else KeyNotice(key))

        return cls(
            send=send,
            name=spec.name,
            target=describe_target(spec),
            load=describe_load(spec),
            servers=spec.servers,
            files=files,
            key=key,
        )

    @classmethod
    def resume(cls, run: str, spec: Spec) -> Self:
        """Resume a run, which has this spec."""

        async def send(client: Client) -> BegunRun:
            return await client.resume(run)

        return cls(
            send=send,
            name=spec.name,
            target=describe_target(spec),
            load=describe_load(spec),
            resumed=run,
        )

    @property
    def can_repeat(self) -> bool:
        """Whether it may be sent again if it is not known that the coordinator has received it."""
        return self.key is not None or self.resumed is not None

    def go_on(self, run: str) -> Self:
        """Build the start that goes on with a run, on the next stack of the folder."""

        async def send(client: Client) -> BegunRun:
            known = await client.fetch_summary(run)
            if known.state in _PAUSED_STATES:
                await _resume(client, run)
            return BegunRun(
                run=run, state=known.state, engine=known.engine, engine_reason=known.engine_reason
            )

        return replace(self, send=send, resumed=run, files=())

    def build_title(self, begun: BegunRun) -> str:
        """The name of a run, or else its id, its target, its load and its engine."""
        return build_title(self.name or begun.run, self.target, self.load, str(begun.engine_choice))


async def run_remotely(coordinator: CoordinatorRef, start: RunStart, watch: Watch) -> ExitCode:
    """Begin a run at a coordinator that is already up, and follow it until it rests."""
    interrupts, hints = Interrupts(watch.on_sigterm), InterruptHints(coordinator.flags, outlives=True)
    unbegun = describe_unbegun(start.resumed)
    async with AsyncExitStack() as open_client:
        client = await interrupts.cut(open_client.enter_async_context(Client(coordinator)), unbegun)
        if start.servers is not None and await interrupts.cut(client.fetch_scaling(), unbegun) is None:
            refuse_stack_flags(servers=start.servers)
        try:
            begun = await send_start(client, start, interrupts, hints, quiet=watch.quiet)
        except RunGoneError as error:
            return await finish_deleted(error.summary, watch, str(error))
        follower = Follower(client, watch, hints, interrupts)
        summary = await follower.follow(begun.run, start.build_title(begun))
        return await follower.finish(client, summary)


async def send_start(
    client: Client, start: RunStart, interrupts: Interrupts, hints: InterruptHints, *, quiet: bool
) -> BegunRun:
    """Begin a run, and upload its files first unless that is known to be needless; return it."""
    unanswered = hints.describe_unanswered(start.resumed)
    if start.key is not None and start.files:
        with suppress(UploadNeededError):
            return await interrupts.let_end(start.send(client), unanswered)
    uploading = upload_files(client, start.files, quiet=quiet)
    await interrupts.cut(uploading, describe_unbegun(start.resumed))
    return await interrupts.let_end(start.send(client), unanswered)


def refuse_stack_flags(**given: int | None) -> None:
    """Refuse flags that shape a local stack: a coordinator outside a cluster cannot scale."""
    for name, count in given.items():
        if count is not None:
            raise UserError(f"--{name}: shapes a local stack; it cannot be combined with --coordinator")


async def submit_once(
    client: Client,
    values: Mapping[str, Any],
    claims: Sequence[FileClaim],
    key: str,
    notice: "KeyNotice | None",
) -> BegunRun:
    """Return the run with a key, submitted if there is none, and resumed if it is paused.

    With a key, all of this can be tried again while the coordinator does not answer. The notice is for a run
    that was there already.

    Raises:
        UploadNeededError: there is none, and a file of the spec is to be uploaded first.
        RunGoneError: the run was deleted.
        UnreachableError: the coordinator does not answer for long.
    """

    async def submit() -> BegunRun:
        begun, is_new = await client.submit_once(values, claims, key)
        if not is_new and notice is not None:
            notice.report(begun.run, begun.state)
        if begun.state in _PAUSED_STATES:
            await _resume(client, begun.run)
        return begun

    return await try_again(submit)


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
    """Reports that a run has the key and is not started anew: each state once, however often it is found."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._reported: tuple[str, RunState] | None = None

    def report(self, run: str, state: RunState) -> None:
        """Report a run in a state."""
        if self._reported != (run, state):
            self._reported = run, state
            write_note(f"run {run} has the key {self._key} and is {state}")


async def finish_deleted(summary: Summary, watch: Watch, reason: str) -> ExitCode:
    """Show how a run ended that was deleted since; it is not sent again, even if it had not ended."""
    if summary.state in FINAL_STATES:
        write_note(reason)
        return await show_end(watch, summary)
    reason = f"{reason} before its end; it is not sent again, another run needs another key"
    write_error(reason)
    watch.write_reason(ExitCode.CUT_SHORT, reason)
    return ExitCode.CUT_SHORT
