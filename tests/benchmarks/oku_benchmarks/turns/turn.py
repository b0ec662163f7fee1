"""One turn of a contestant: its process is started, watched, ended, and its own account is read."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oku_benchmarks.measuring.observer import LOOK_S, Observation, Observer, look_on
from oku_benchmarks.measuring.target import Target
from oku_benchmarks.measuring.vitals import find_children
from oku_cli.process.child import Child

CONTESTANTS = Path(__file__).parents[1] / "contestants"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What came of it.

    Args:
        account: what the contestant wrote of itself, as JSON; empty when it writes none.
        samples: what was seen from outside.
        sent: requests that reached the target.
        took_s: from the start of the process to its end.
    """

    account: dict[str, Any]
    samples: Sequence[Observation]
    sent: int
    took_s: float


@dataclass(frozen=True)
class Stage:
    """Where contestants take their turns.

    Args:
        target: what they ask.
        folder: for their logs and accounts; each takes the place of the one before.
        timeout_s: longest time of a turn.
        look_s: between two looks at a contestant.
        act: called with every look.
        beside: other processes that are looked at, by name.
    """

    target: Target
    folder: Path
    timeout_s: float = 300.0
    look_s: float = LOOK_S
    act: Callable[[Observation], None] = look_on
    beside: Mapping[str, int] = field(default_factory=dict)

    def play(
        self,
        name: str,
        command: Callable[[Path], Sequence[str]],
        find_pids: Callable[[], Mapping[str, int]] | None = None,
    ) -> Turn:
        """Run a command to its end.

        Args:
            name: of its process in the samples.
            command: builds it, given the file that it may write its account to.
            find_pids: its processes by name; if not given, the one and those that it has started.

        Raises:
            BenchmarkError: it failed or took too long.
        """
        account = self.folder / f"{name}.json"
        account.unlink(missing_ok=True)
        child = Child(name, command(account), self.folder / f"{name}.log", os.environ)
        find_own = find_pids or (lambda: _find_all(name, child.pid))
        observer = Observer(self.target, lambda: {**find_own(), **self.beside})
        began = time.monotonic()
        child.start()
        try:
            observer.watch(child, self.timeout_s, self.look_s, self.act)
            took_s = time.monotonic() - began
        finally:
            # The stack of `oku run` dies with it.
            child.kill()
            child.wait(10.0)
        return Turn(
            account=json.loads(account.read_bytes()) if account.exists() else {},
            samples=observer.samples,
            sent=observer.count_sent(),
            took_s=took_s,
        )

    def play_script(self, name: str, script: str, *arguments: object) -> Turn:
        """Run a script of the contestants; the target's URL comes first, its file for the account last."""
        words = [str(argument) for argument in arguments]
        path = str(CONTESTANTS / script)
        return self.play(name, lambda account: [sys.executable, path, self.target.url, *words, str(account)])


def _find_all(name: str, pid: int) -> dict[str, int]:
    """A process, and those that it has started."""
    started = {f"{name}, process {child}": child for child in find_children(pid)}
    return {name: pid} | started
