"""What a seed draws: a run, and what happens to its processes meanwhile. Nothing here starts anything."""

import random
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from oku_core.spec.spec import HTTP1_ENGINES, Engine

_DELAYS = ("0s", "5ms", "20ms", "5ms..50ms", "exp:20ms", "100ms..800ms")
_LONGEST_RUN_S = 25.0
_MOST_RPS = 3_000
"""What two busy processors are expected to do, whatever the window allows."""
_RANGE_SIZES = ((), (), (), ("--range-size", "7"), ("--range-size", "100"), ("--range-size", "1000"))
_ARRIVALS = ((), ("--arrivals", "poisson", "--seed", "7"))
_LATES = ((), ("--late", "200ms"), ("--late", "send"))
_WARM_UP = ("--warm-up", "1500ms")
_MEAN_S = {"0s": 0.0, "5ms": 0.005, "20ms": 0.02, "5ms..50ms": 0.028, "exp:20ms": 0.02, "100ms..800ms": 0.45}


class Deed(StrEnum):
    """What is done to a run."""

    KILL = "kill"
    FREEZE = "freeze"
    TERMINATE = "terminate"
    KILL_COMMAND = "kill the command"
    INTERRUPT = "Ctrl-C"


class Shape(Enum):
    """What ends a run, and what its pace is."""

    COUNT = auto()
    TIME = auto()
    WINDOWS = auto()
    RATE = auto()
    RATES = auto()


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
        load: the flags that say what is sent, and when.
        engine: that sends it.
        workers: how many.
        servers: how many delay servers.
        delay: of them.
        faults: what happens, in order.
    """

    seed: int
    load: tuple[str, ...]
    engine: Engine
    workers: int
    servers: int
    delay: str
    faults: tuple[Fault, ...]

    def build_flags(self) -> list[str]:
        """The flags of `oku run`."""
        return [
            *self.load, "--engine", self.engine, "--workers", str(self.workers),
            "--servers", str(self.servers), "--delay", self.delay,
        ]  # fmt: skip

    def describe(self) -> str:
        """In one line."""
        return (
            f"{' '.join(self.load)} by {self.workers} {self.engine}, {self.servers} x {self.delay}:"
            f" {'; '.join(fault.describe() for fault in self.faults)}"
        )


def draw_run(seed: int) -> Draw:
    """The run of a seed: always the same one."""
    chance = random.Random(seed)
    workers, delay = chance.randint(1, 4), chance.choice(_DELAYS)
    concurrency = chance.choice((1, 3, 10, 50, 200))
    servers = chance.randint(1, 2)
    mean_s = _MEAN_S[delay] + 0.001
    capacity_rps = min(_MOST_RPS, workers * concurrency / mean_s)
    return Draw(
        seed=seed,
        load=_draw_load(chance, concurrency, capacity_rps),
        engine=chance.choice(HTTP1_ENGINES),
        workers=workers,
        servers=servers,
        delay=delay,
        faults=tuple(_draw_fault(chance, workers, servers) for _ in range(chance.randint(1, 8))),
    )


def _draw_load(chance: random.Random, concurrency: int, capacity_rps: float) -> tuple[str, ...]:
    """Flags of a load that lasts for some seconds, if nothing happens to it."""
    seconds, shape = round(chance.uniform(4.0, _LONGEST_RUN_S), 1), chance.choice(list(Shape))
    rate = max(2, round(capacity_rps * chance.uniform(0.1, 0.6)))
    limit = chance.choice(((), (), ("--max-rate", f"{rate}/s")))
    count = ("--requests", str(max(20, round((rate if limit else capacity_rps) * seconds))))
    window = ("--concurrency", str(concurrency))
    match shape:
        case Shape.COUNT:
            load = (*count, *window, *chance.choice(_RANGE_SIZES))
        case Shape.TIME:
            load = ("--duration", f"{seconds}s", *window, *chance.choice(((), count)))
        case Shape.WINDOWS:
            load = _build_stages(seconds, f"0..{concurrency * 2}", f"{concurrency * 2}", "1")
        case Shape.RATE:
            load = ("--rate", f"{rate}/s", "--duration", f"{seconds}s")
        case Shape.RATES:
            load = _build_stages(seconds, f"0..{rate}/s", f"{rate}/s", "1/s")
    if shape in (Shape.RATE, Shape.RATES):
        load = (*load, *chance.choice(_ARRIVALS), *chance.choice(_LATES), *chance.choice(((), window)))
    else:
        load = (*load, *limit)
    return (*load, *chance.choice(((), (), _WARM_UP)))


def _build_stages(seconds: float, *levels: str) -> tuple[str, ...]:
    """Stages that last as long each."""
    each_s = round(seconds / len(levels), 1)
    return tuple(word for level in levels for word in ("--stage", f"{each_s}s:{level}"))


def _draw_fault(chance: random.Random, workers: int, servers: int) -> Fault:
    after_s = chance.choice((0.0, chance.uniform(0, 1), chance.uniform(0, 5)))
    worker = f"worker-{chance.randint(1, workers)}"
    server = f"server-{chance.randint(1, servers)}"
    deed = chance.choices(list(Deed), weights=(8, 5, 2, 2, 1))[0]
    if deed in (Deed.KILL_COMMAND, Deed.INTERRUPT):
        return Fault(after_s, deed, workers=chance.randint(1, 4))
    if deed is Deed.TERMINATE:
        return Fault(after_s, deed, worker)
    victim = chance.choices((worker, "coordinator", server), weights=(6, 5, 1))[0]
    length_s = chance.choice((0.3, 2.5, 6.0, 14.0)) * chance.uniform(0.7, 1.3) if deed is Deed.FREEZE else 0.0
    return Fault(after_s, deed, victim, length_s)
