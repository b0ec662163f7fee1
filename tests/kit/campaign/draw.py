"""What a seed draws: a run, and what happens to its processes meanwhile. Nothing here starts anything."""

import random
from enum import StrEnum
from typing import NamedTuple

from oku_core.spec.spec import Engine

_DELAYS = ("0s", "5ms", "20ms", "5ms..50ms", "exp:20ms", "100ms..800ms")
_LONGEST_RUN_S = 25.0
_MOST_RPS = 3_000
"""What two busy processors are expected to do, whatever the window allows."""
_MEAN_S = {"0s": 0.0, "5ms": 0.005, "20ms": 0.02, "5ms..50ms": 0.028, "exp:20ms": 0.02, "100ms..800ms": 0.45}


class Deed(StrEnum):
    """What is done to a run."""

    KILL = "kill"
    FREEZE = "freeze"
    TERMINATE = "terminate"
    KILL_COMMAND = "kill the command"
    INTERRUPT = "Ctrl-C"


class Fault(NamedTuple):
    """One deed.

    Attributes:
        after_s: how long after the one before, or after the first lease.
        deed: what is done.
        victim: the process that it is done to; empty for the command.
        length_s: how long the process is frozen.
        workers: with how many workers the run is resumed, if it is the command that ends.
    """

    after_s: float
    deed: Deed
    victim: str = ""
    length_s: float = 0.0
    workers: int = 0

    def describe(self) -> str:
        """In a few words."""
        length = f" for {self.length_s:.1f} s" if self.length_s else ""
        resumed = f", resume with {self.workers}" if self.workers else ""
        return f"+{self.after_s:.1f} s {' '.join(filter(None, (self.deed, self.victim)))}{length}{resumed}"


class Draw(NamedTuple):
    """One run of a campaign.

    Attributes:
        seed: that it was drawn from.
        requests: how many.
        engine: that sends them.
        concurrency: of each worker.
        workers: how many.
        servers: how many delay servers.
        delay: of them.
        range_size: of a lease; 0 for one that adapts.
        faults: what happens, in order.
    """

    seed: int
    requests: int
    engine: Engine
    concurrency: int
    workers: int
    servers: int
    delay: str
    range_size: int
    faults: tuple[Fault, ...]

    def build_flags(self) -> list[str]:
        """The flags of `oku run`."""
        flags = {
            "--requests": self.requests,
            "--engine": self.engine,
            "--concurrency": self.concurrency,
            "--workers": self.workers,
            "--servers": self.servers,
            "--delay": self.delay,
            "--range-size": self.range_size,
        }
        return [word for flag, value in flags.items() if value for word in (flag, str(value))]

    def describe(self) -> str:
        """In one line."""
        size = f", leases of {self.range_size}" if self.range_size else ""
        return (
            f"{self.requests:,} by {self.engine}, {self.workers} x {self.concurrency} in flight,"
            f" {self.servers} x {self.delay}{size}: {'; '.join(fault.describe() for fault in self.faults)}"
        )


def draw_run(seed: int) -> Draw:
    """The run of a seed: always the same one."""
    chance = random.Random(seed)
    workers, delay = chance.randint(1, 4), chance.choice(_DELAYS)
    concurrency = chance.choice((1, 3, 10, 50, 200))
    servers = chance.randint(1, 2)
    mean_s = _MEAN_S[delay] + 0.001
    rate_rps = min(_MOST_RPS, workers * concurrency / mean_s)
    return Draw(
        seed=seed,
        requests=max(20, round(rate_rps * chance.uniform(4.0, _LONGEST_RUN_S))),
        engine=chance.choice(list(Engine)),
        concurrency=concurrency,
        workers=workers,
        servers=servers,
        delay=delay,
        range_size=chance.choice((0, 0, 0, 7, 100, 1_000)),
        faults=tuple(_draw_fault(chance, workers, servers) for _ in range(chance.randint(1, 8))),
    )


def _draw_fault(chance: random.Random, workers: int, servers: int) -> Fault:
    after_s = chance.choice((0.0, chance.uniform(0, 1), chance.uniform(0, 5)))
    worker = f"worker-{chance.randint(1, workers)}"
    server = f"server-{chance.randint(1, servers)}"
    deed = chance.choices(list(Deed), weights=(8, 5, 2, 2, 1))[0]
    if deed in (Deed.KILL_COMMAND, Deed.INTERRUPT):
        return Fault(after_s, deed, workers=chance.randint(1, 4))
    if deed is Deed.TERMINATE:
        return Fault(after_s, deed, worker)
    victim = chance.choices((worker, "coordinator", "broker", server), weights=(6, 3, 2, 1))[0]
    length_s = chance.choice((0.3, 2.5, 6.0, 14.0)) * chance.uniform(0.7, 1.3) if deed is Deed.FREEZE else 0.0
    return Fault(after_s, deed, victim, length_s)
