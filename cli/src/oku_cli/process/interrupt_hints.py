"""Words the effect of an interrupt on a run for its user, and how to resume the run.

The data folder of a container may go with it: then the hint explains how to keep it.
"""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from oku_cli.process.interrupt import SignalAction
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState, is_resumable

VARIABLE = "OKU_IN_CONTAINER"
_MOUNTS = Path("/proc/self/mountinfo")
"""One line for each mount; its name may have any bytes; see proc(5).

A volume may be of the same device as the root file system."""
_MOUNT_POINT = 4
_ROOT = Path("/")


def find_volume(folder: Path) -> Path | None:
    """Return where the file system of `folder` is mounted; None if it belongs to the container."""
    lines = os.fsdecode(_MOUNTS.read_bytes()).strip("\n").split("\n")
    points = (line.split(" ")[_MOUNT_POINT] for line in lines)
    mounted = {Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), point)) for point in points}
    absolute = folder.absolute()
    mount = next(path for path in (absolute, *absolute.parents) if path in mounted | {_ROOT})
    return None if mount == _ROOT else mount


class _Words(NamedTuple):
    """How an action reads while it goes on and when it is done."""

    does: str
    done: str


_WORDS = {
    SignalAction.PAUSE: _Words("pausing", "paused"),
    SignalAction.CANCEL: _Words("cancelling", "cancelled"),
}


class OrderDelivery(Enum):
    """The delivery of a request to pause or cancel a run."""

    OPEN = auto()
    """The coordinator has not answered."""
    ACCEPTED = auto()
    """The run is coming to rest."""
    REFUSED = auto()
    """The run cannot be paused or cancelled: it is over, or the coordinator does not know it."""


@dataclass(frozen=True)
class InterruptHints:
    """Words the hints, which depend on where the run is.

    Args:
        flags: the flags that name its backend in a command.
        outlives: whether the run continues when the command ends, as it does at a remote coordinator.
        folder: the data folder that the command holds; None if it holds none.
    """

    flags: Sequence[str] = ()
    outlives: bool = False
    folder: Path | None = None

    def build_command(self, action: str, run: str) -> str:
        """Build a command to type that resumes, pauses or shows the run."""
        return build_hint(action, run, *self.flags)

    def describe_resume(self, run: str, state: RunState, *, is_broken: bool = False) -> str | None:
        """Explain how to resume a run; None if it cannot be resumed."""
        if not is_resumable(state, is_broken=is_broken):
            return None
        return self.describe_resume_command(run)

    def describe_resume_command(self, run: str) -> str:
        """Explain how to resume a run that can be resumed."""
        hint = f"resume it with: {self.build_command('resume', run)}"
        if self.folder is None or VARIABLE not in os.environ:
            return hint
        volume = find_volume(self.folder)
        if volume is None:
            return "its data goes with this container; to keep runs: docker run -v oku:/data"
        return f"{hint} (same volume at {volume})"

    def describe_first(self, run: str, action: SignalAction = SignalAction.PAUSE) -> str:
        """Describe the effect of the first signal, unless it detaches the command."""
        if self.outlives:
            what = _WORDS[action].does
            return f"{what} run {run}: what is in flight may finish; Ctrl-C again does not wait for them"
        what = "cancelling" if action is SignalAction.CANCEL else "stopping"
        return f"{what}: what is in flight may finish; Ctrl-C again stops at once"

    def describe_detached(self, run: str) -> str:
        """Explain that a run goes on without this command."""
        return f"run {run} goes on; wait for it with: {self.build_command('wait', run)}"

    def describe_unanswered(self, resumed: str | None) -> str:
        """Explain that a coordinator, asked to start or resume a run, has not answered."""
        look = build_hint("runs", *self.flags)
        what = f"run {resumed} was resumed" if resumed else "a run was begun"
        return f"interrupted, the coordinator has not said whether {what}; see: {look}"

    def describe_second(
        self,
        run: str,
        delivery: OrderDelivery,
        obstacle: str = "",
        action: SignalAction = SignalAction.PAUSE,
    ) -> str:
        """Describe the run that a second signal leaves behind, or an obstacle that keeps it from stopping.

        The obstacle is empty if the second signal ends the command; the action belongs to the first one.
        """
        if obstacle:
            return f"{self.describe_second(run, delivery, action=action)} ({obstacle})"
        if not self.outlives:
            return "stopped at once"
        verb, done = action, _WORDS[action].done
        look = f"look at it with: {self.build_command('show', run)}"
        match delivery:
            case OrderDelivery.OPEN:
                why = f"its coordinator could not be told to {verb} it"
                return f"run {run} goes on: {why}; {verb} it with: {self.build_command(verb, run)}"
            case OrderDelivery.ACCEPTED:
                what = f"is being {done} and comes to rest by itself"
                can_resume = action is SignalAction.PAUSE
                resume = f"; {self.describe_resume_command(run)}" if can_resume else ""
                return f"run {run} {what}; {look}{resume}"
            case OrderDelivery.REFUSED:
                return f"run {run} was not {done} by this command; {look}"


def describe_unbegun(resumed: str | None) -> str:
    """Explain that a command was interrupted before it reached a coordinator."""
    what = f"run {resumed} was not resumed" if resumed else "no run was begun"
    return f"interrupted, {what}"


def describe_pause(reason: str) -> str:
    """Explain a pause, given the reason in the ledger."""
    if reason == ExpiryReason.STACK_LOST:
        return "was interrupted: its processes were killed; what is accounted is kept"
    return f"is paused: {reason or 'nothing is in flight'}; what is accounted is kept"


def build_hint(*arguments: str) -> str:
    """Build a command that calls `oku` as the user has, which `./task` passes in OKU_COMMAND."""
    return " ".join([os.environ.get("OKU_COMMAND", "oku"), *map(shlex.quote, arguments)])
