"""What one seed means: the run, its workers, and the faults that are to befall them, drawn in advance."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec.structs import replace
from tests.simulation.loads import Load, draw_spec

from oku_core.spec.spec import Engine, Hook, Spec
from oku_core.spec.target import Target
from oku_core.spec.values.url import Url

_LONGEST_FAULTS_S = 60.0
_SECOND_SHARE = 0.3
_HOOKS_SHARE = 0.3
"""Of the seeds whose runs have hooks."""
_TARGETS_SHARE = 0.3
"""Of the seeds whose runs have several targets."""
_ONE_MACHINE_SHARE = 0.5
"""Of the seeds whose workers share a machine, as those of a local stack do."""
_USER_CODE_SHARE = 0.25
"""Of the other seeds, those whose runs are iterations of user code."""
_WORKERS_SHARE = 0.35
"""Of the seeds whose runs ask for a number of workers, which may be fewer than there are."""


class Fault(StrEnum):
    """What can befall the system; the words stand in the story and after `--faults`."""

    KILL_WORKER = "kill-worker"
    END_WORKER = "end-worker"
    KILL_HOST = "kill-host"
    FREEZE_WORKER = "freeze-worker"
    CUT_WORKER = "cut-worker"
    ADD_WORKER = "add-worker"
    KILL_COORDINATOR = "kill-coordinator"
    FREEZE_COORDINATOR = "freeze-coordinator"
    CUT_COORDINATOR = "cut-coordinator"
    CUT_POWER = "cut-power"
    SECOND_COORDINATOR = "second-coordinator"
    STATEMENT = "statement"
    FULL_DISK = "full-disk"
    KILL_BROKER = "kill-broker"
    EMPTY_BROKER = "empty-broker"
    MESSAGES = "messages"
    REPLAY = "replay"
    FORGE = "forge"
    MISDELIVER = "misdeliver"
    IMPOSTOR = "impostor"
    SET_CLOCK = "set-clock"
    PAUSE = "pause"
    CANCEL = "cancel"
    CANCEL_NOW = "cancel-now"


_WEIGHTS = {
    Fault.KILL_WORKER: 6, Fault.END_WORKER: 3, Fault.KILL_HOST: 3, Fault.FREEZE_WORKER: 4,
    Fault.CUT_WORKER: 4, Fault.ADD_WORKER: 2, Fault.KILL_COORDINATOR: 5, Fault.FREEZE_COORDINATOR: 2,
    Fault.CUT_COORDINATOR: 2, Fault.CUT_POWER: 2, Fault.SECOND_COORDINATOR: 1, Fault.STATEMENT: 8,
    Fault.FULL_DISK: 2, Fault.KILL_BROKER: 2, Fault.EMPTY_BROKER: 2, Fault.MESSAGES: 8, Fault.REPLAY: 4,
    Fault.FORGE: 2, Fault.MISDELIVER: 2, Fault.IMPOSTOR: 3, Fault.SET_CLOCK: 2, Fault.PAUSE: 3,
    Fault.CANCEL: 0.3, Fault.CANCEL_NOW: 0.3,
}  # fmt: skip


@dataclass(frozen=True)
class WorkerPlan:
    """A worker: its name, how slow it is, how much faster its clock goes, and how far that is ahead."""

    name: str
    slowness: float
    drift: float
    ahead_s: float
    joins_at_s: float


@dataclass(frozen=True)
class Plan:
    """What one seed means.

    Attributes:
        seed: the number that all of it is drawn from.
        specs: of the runs, in the order in which they are submitted.
        latency_s: the median latency of the target.
        slow_share: the share of its answers that take 100 times as long.
        workers: those that are there, or come.
        faults: when each fault happens, in true time.
        faults_end_s: when the last of them is over; what is broken then is mended.
        worker_timeout_s: how long a silent worker counts as alive.
        lines: how many lines of the story are kept.
        shares_machine: whether all workers are on one machine, which is never lost.
    """

    seed: int
    specs: tuple[Spec, ...]
    latency_s: float
    slow_share: float
    workers: tuple[WorkerPlan, ...]
    faults: tuple[tuple[float, Fault], ...] = field(default=())
    faults_end_s: float = 0.0
    worker_timeout_s: float = 6.0
    lines: int = 80
    shares_machine: bool = False


def draw_plan(
    seed: int,
    kinds: frozenset[Fault] | None = None,
    interval_s: float | None = None,
    loads: frozenset[Load] | None = None,
) -> Plan:
    """Draw what a seed means.

    Args:
        seed: the seed.
        kinds: the faults that may happen; all unless given.
        interval_s: the mean time from one to the next; the seed draws it unless given.
        loads: the loads that runs may have; all unless given.
    """
    chance = random.Random(f"plan {seed}")
    latency_s = 10 ** chance.uniform(-2, -0.3)
    concurrency = chance.choice((1, 3, 8, 20, 40))
    workers = tuple(
        WorkerPlan(
            name=f"w{number}",
            slowness=10 ** chance.choice((0.0, 0.0, chance.uniform(0, 2))),
            drift=1.0 + chance.choice((0.0, chance.uniform(-0.001, 0.001))),
            ahead_s=chance.choice((0.0, chance.gauss(0, 0.5), chance.gauss(0, 30))),
            joins_at_s=chance.choice((0.0, 0.0, 0.0, chance.uniform(0, 20))),
        )
        for number in range(chance.randint(1, 6))
    )
    wanted_workers = _draw_workers(f"{seed}", len(workers))
    wanted = Spec(concurrency=concurrency, workers=wanted_workers)
    slot_rps = estimate_slot_rps(1.5 * latency_s, workers, wanted)
    wanted_s = chance.uniform(5, 50)
    requests = max(20, min(5000, math.ceil(concurrency * slot_rps * wanted_s)))
    targets = _draw_targets(seed)
    is_user_code = not targets and _draw_user_code(seed)
    spec = Spec(
        requests=requests,
        engine=Engine.PYTHON if is_user_code else Engine.AIOHTTP,
        urls=() if targets or is_user_code else (Url("http://target.test/{i}"),),
        targets=targets,
        concurrency=concurrency,
        timeout_s=chance.choice((1.0, 4.0, 10.0)),
        grace_s=chance.choice((None, 0.0, 2.0)),
        range_size=chance.choice((None, None, None, 1, 7, 100)) if requests <= 2000 else None,
    )
    spec = replace(spec, hooks=_draw_hooks(seed), workers=wanted_workers)
    faults = _draw_faults(chance, kinds, interval_s)
    return Plan(
        seed=seed,
        specs=(
            draw_spec(f"{seed}", spec, slot_rps, loads),
            *(
                draw_spec(f"{seed} second", second, slot_rps, loads)
                for second in _draw_second(seed, spec, len(workers))
            ),
        ),
        latency_s=latency_s,
        slow_share=chance.choice((0.0, 0.0, 0.01)),
        workers=workers,
        faults=faults,
        faults_end_s=faults[-1][0] + 5.0 if faults else 0.0,
        shares_machine=random.Random(f"machines {seed}").random() < _ONE_MACHINE_SHARE,
    )


def _draw_targets(seed: int) -> tuple[Target, ...]:
    """Some seeds have several targets, whose requests count by themselves."""
    chance = random.Random(f"targets {seed}")
    if chance.random() >= _TARGETS_SHARE:
        return ()
    return tuple(
        Target(name=f"t{number}", url="http://target.test/{i}", weight=chance.randint(1, 9))
        for number in range(chance.choice((2, 3, 10)))
    )


def _draw_hooks(seed: int) -> tuple[Hook, ...]:
    """Some seeds have a setup, a teardown, or both."""
    chance = random.Random(f"hooks {seed}")
    if chance.random() >= _HOOKS_SHARE:
        return ()
    return chance.choice(((Hook.SETUP, Hook.TEARDOWN), (Hook.SETUP,), (Hook.TEARDOWN,)))


def _draw_user_code(seed: int) -> bool:
    """Some seeds have user code; what it does, the simulated target says."""
    return random.Random(f"user code {seed}").random() < _USER_CODE_SHARE


def _draw_workers(source: str, most: int) -> int | None:
    """How many workers a run asks for; None for all."""
    chance = random.Random(f"workers {source}")
    return chance.randint(1, most) if chance.random() < _WORKERS_SHARE else None


def estimate_slot_rps(latency_s: float, workers: Sequence[WorkerPlan], spec: Spec) -> float:
    """How many requests a second the slowest workers send that a run may get, for each one in flight."""
    wanted = min(spec.workers or len(workers), spec.most_workers)
    slowest = sorted((worker.slowness for worker in workers), reverse=True)[:wanted]
    return sum(1 / (latency_s * slowness) for slowness in slowest) / len(slowest)


def _draw_second(seed: int, first: Spec, workers: int) -> tuple[Spec, ...]:
    """Some seeds have a second run, with another window, that waits for its turn."""
    chance = random.Random(f"second {seed}")
    if chance.random() >= _SECOND_SHARE:
        return ()
    requests = max(10, int(first.requests * chance.uniform(0.05, 0.5)))
    second = replace(first, requests=requests, concurrency=chance.choice((1, 5, 20)), range_size=None)
    if first.workers is not None:
        second = replace(second, workers=_draw_workers(f"second {seed}", workers) or first.workers)
    return (second,)


def _draw_faults(
    chance: random.Random, kinds: frozenset[Fault] | None, interval_s: float | None
) -> tuple[tuple[float, Fault], ...]:
    chosen = [fault for fault in Fault if kinds is None or fault in kinds]
    if not chosen:
        return ()
    # Each seed has some kinds of faults only: with all of them at once little of the system is ever at work.
    some = chance.sample(chosen, min(len(chosen), chance.choice((1, 2, 4, 8, len(chosen)))))
    weights = [_WEIGHTS[fault] for fault in some]
    drawn_s = chance.choice((0.3, 1.0, 3.0))
    until_s = chance.uniform(5.0, _LONGEST_FAULTS_S)
    faults = []
    at = chance.uniform(0.0, 5.0)
    while at < until_s:
        faults.append((at, chance.choices(some, weights)[0]))
        at += chance.expovariate(1 / (drawn_s if interval_s is None else interval_s))
    return tuple(faults)
