"""A run of `oku run` against the delay servers that it brings itself, which are its target."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from oku_benchmarks.measuring.observer import LOOK_S, Observation, look_on
from oku_benchmarks.turns.oku_turn import Load, OkuTurn, open_data_dir, play_oku
from oku_benchmarks.turns.tick_follower import TickFollower
from oku_benchmarks.turns.turn import Stage
from oku_cli.backends.data_dir import DataDir
from oku_core.summary.tick import Tick
from oku_server.counts.count_store import read_served


class OwnServers:
    """What counts the requests.

    Args:
        data_dir: of the stack.
        follower: of its one run; it knows the run's id.
    """

    url = ""

    def __init__(self, data_dir: DataDir, follower: TickFollower) -> None:
        self._counts = data_dir.counts
        self._follower = follower

    def read_served(self) -> int:
        """How many requests of the run they have received, read from their shared memory."""
        run = self._follower.run_id
        if not run:
            return 0
        folders = {path.parent for path in self._counts.rglob("served-*.bin")}
        return sum(read_served(folder, run) for folder in folders)


@dataclass(frozen=True, kw_only=True)
class OwnRun:
    """A run, and its ticks."""

    played: OkuTurn
    ticks: Sequence[Tick]


def play_own(
    folder: Path,
    load: Load,
    *,
    timeout_s: float,
    look_s: float = LOOK_S,
    act: Callable[[Observation], None] = look_on,
) -> OwnRun:
    """Run `oku run` in a terminal, with everything that belongs to it.

    Args:
        folder: for data and logs.
        load: what to run.
        timeout_s: longest time of it.
        look_s: between two looks.
        act: called with every look.
    """
    with open_data_dir(folder) as data_dir, TickFollower(data_dir) as follower:
        stage = Stage(OwnServers(data_dir, follower), folder, timeout_s=timeout_s, look_s=look_s, act=act)
        played = play_oku(stage, data_dir, load, is_shown=True)
        return OwnRun(played=played, ticks=follower.ticks)
