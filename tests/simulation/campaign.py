"""Plays many seeds, on all processors, and sums up how they went."""

import itertools
import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection

from tests.simulation.bounds import BoundStatistics
from tests.simulation.loads import Load
from tests.simulation.plan import Fault, draw_plan
from tests.simulation.world import Ending, play

from oku_core.process.prctl import end_with_parent

_AHEAD = 4
"""How many seeds a process is sent before its results are awaited: a long one holds no other up."""


@dataclass
class Tally:
    """How the seeds of a campaign went.

    Attributes:
        seeds: how many were played.
        faults: how many faults there were in all of them.
        steps: how many things happened.
        seconds: how long they were, in simulated seconds.
        states: how the runs ended.
        broken: the seeds in which a law was broken.
        bounds: how wide `resent_at_most` is, by the mode of the run.
    """

    seeds: int = 0
    faults: int = 0
    steps: int = 0
    seconds: float = 0.0
    states: Counter[str] = field(default_factory=Counter)
    broken: list[Ending] = field(default_factory=list)
    bounds: BoundStatistics = field(default_factory=BoundStatistics)

    def add(self, ending: Ending) -> None:
        """A seed has been played."""
        self.seeds += 1
        self.faults += ending.faults
        self.steps += ending.steps
        self.seconds += ending.seconds
        self.states.update(ending.state.split())
        self.bounds.add(ending.bounds)
        if ending.broken:
            self.broken.append(ending)


def play_one(
    seed: int,
    kinds: frozenset[Fault] | None = None,
    interval_s: float | None = None,
    lines: int = 80,
    loads: frozenset[Load] | None = None,
) -> Ending:
    """Play one seed, in whichever process, and keep so many lines of its story."""
    return play(replace(draw_plan(seed, kinds, interval_s, loads), lines=lines))


def play_seeds(
    seeds: Iterable[int],
    kinds: frozenset[Fault] | None = None,
    interval_s: float | None = None,
    processes: int | None = None,
    lines: int = 80,
    loads: frozenset[Load] | None = None,
) -> Iterator[Ending]:
    """Play seeds and yield how each went, in their order.

    Args:
        seeds: the seeds.
        kinds: the faults that may happen; all unless given.
        interval_s: the mean time between two of them; each seed draws it unless given.
        processes: how many to use; one for each processor unless given.
        lines: how many lines of a story are kept.
        loads: the loads that runs may have; all unless given.
    """
    work = partial(play_one, kinds=kinds, interval_s=interval_s, lines=lines, loads=loads)
    count = processes or os.cpu_count() or 1
    if count == 1:
        yield from map(work, seeds)
        return
    with ExitStack() as players:
        pipes = [players.enter_context(_start_player(work)) for _ in range(count)]
        waiting: deque[Connection] = deque()
        for seed, pipe in zip(seeds, itertools.cycle(pipes), strict=False):
            if len(waiting) == _AHEAD * count:
                yield waiting.popleft().recv()
            pipe.send(seed)
            waiting.append(pipe)
        while waiting:
            yield waiting.popleft().recv()


@contextmanager
def _start_player(work: Callable[[int], Ending]) -> Iterator[Connection]:
    """A process that plays the seeds it is sent. No pool: its locks need a /dev/shm that can be written."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_play_each, args=(work, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        process.terminate()
        process.join()
        ours.close()


def _play_each(work: Callable[[int], Ending], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its processes
    # A dead parent closes no pipe: the other players have inherited its ends.
    end_with_parent(os.getppid())
    while True:
        pipe.send(work(pipe.recv()))
