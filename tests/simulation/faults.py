"""Makes the faults of a plan happen: to processes, machines, disks, the network, the broker and its messages.

Each fault heals by itself after a while that the seed draws; `mend` heals all that is still broken.
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.machine.disk import DiskFault
from tests.simulation.machine.process import Process
from tests.simulation.outside.broker import Connection, Trouble
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.actors.worker import WorkerActor
    from tests.simulation.world import World

_PAUSES_S = (0.05, 0.5, 3.0, 12.0, 40.0)
_MOST_STEPS = 60
_MOST_STATEMENTS = 40
_LOST_SHARE = 0.2
"""Of the workers that are killed, those that die with their machine."""


class Misfortune:
    """Makes faults happen to a world.

    Args:
        world: all of it.
        chance: draws whom they befall, and for how long.
    """

    def __init__(self, world: "World", chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self._calls: dict[Fault, Callable[[], None]] = {
            Fault.KILL_WORKER: self._kill_worker,
            Fault.END_WORKER: self._end_worker,
            Fault.KILL_HOST: lambda: self._on_worker(lambda worker: worker.kill_host()),
            Fault.FREEZE_WORKER: lambda: self._on_worker(lambda worker: self._freeze(worker.process)),
            Fault.CUT_WORKER: lambda: self._on_worker(lambda worker: self._cut(worker.connection)),
            Fault.ADD_WORKER: self._world.add_worker,
            Fault.KILL_COORDINATOR: self._kill_coordinator,
            Fault.FREEZE_COORDINATOR: lambda: self._on_coordinator(self._freeze),
            Fault.CUT_COORDINATOR: self._cut_coordinator,
            Fault.CUT_POWER: self._cut_power,
            Fault.SECOND_COORDINATOR: self._world.try_second_coordinator,
            Fault.STATEMENT: self._break_statement,
            Fault.FULL_DISK: self._fill_disk,
            Fault.KILL_BROKER: lambda: self._kill_broker(with_data=False),
            Fault.EMPTY_BROKER: lambda: self._kill_broker(with_data=True),
            Fault.MESSAGES: self._trouble_messages,
            Fault.REPLAY: self._world.attacker.replay,
            Fault.FORGE: self._world.attacker.forge,
            Fault.MISDELIVER: self._world.attacker.misdeliver,
            Fault.IMPOSTOR: self._world.attacker.speak_as_worker,
            Fault.SET_CLOCK: self._set_clock,
            Fault.PAUSE: self._pause,
            Fault.CANCEL: lambda: self._world.operator.cancel(now=False),
            Fault.CANCEL_NOW: lambda: self._world.operator.cancel(now=True),
        }
        self._is_over = False

    def strike(self, fault: Fault) -> None:
        """Let a fault happen now."""
        if not self._is_over:
            self._calls[fault]()

    def mend(self) -> None:
        """Heal all that is broken; nothing breaks any more."""
        self._is_over = True
        world = self._world
        world.broker.trouble = Trouble()
        if not world.broker.is_up:
            world.broker.come_back()
        for connection in tuple(world.broker.connections):
            if connection.is_cut:
                world.broker.heal(connection)
            if connection.process.is_frozen:
                connection.process.thaw()
        world.disk.disarm()
        world.story.note("no fault happens any more, and all is mended")

    def _draw_pause_s(self) -> float:
        return self._chance.choice(_PAUSES_S) * self._chance.random()

    def _after(self, delay_s: float, call: Callable[[], object]) -> None:
        self._world.scheduler.after(delay_s, call)

    def _note(self, text: str) -> None:
        self._world.story.note_fault(text)

    def _on_worker(self, strike: "Callable[[WorkerActor], None]") -> None:
        workers = [worker for worker in self._world.workers if worker.is_alive]
        if workers:
            strike(self._chance.choice(workers))

    def _on_coordinator(self, strike: Callable[[Process], None]) -> None:
        process = self._world.coordinator.process
        if process.is_alive:
            strike(process)

    def _kill(self, process: Process) -> None:
        steps = self._chance.choice((0, self._chance.randint(1, _MOST_STEPS)))
        self._note(f"{process.name} is killed" + (f" in {steps} steps" if steps else ""))
        if steps:
            process.kill_after(steps)
        else:
            process.kill()

    def _kill_worker(self) -> None:
        def strike(worker: "WorkerActor") -> None:
            self._kill(worker.process)
            if self._chance.random() < _LOST_SHARE and not self._world.plan.shares_machine:
                self._note(f"the machine of {worker.process.name} is lost")
                worker.lose_records()
            if self._chance.random() < 0.8:
                self._after(self._draw_pause_s() + 0.3, worker.restart)

        self._on_worker(strike)

    def _end_worker(self) -> None:
        def strike(worker: "WorkerActor") -> None:
            self._note(f"{worker.process.name} is told to end")
            worker.drain()
            self._after(self._draw_pause_s() + 0.3, worker.restart)

        self._on_worker(strike)

    def _freeze(self, process: Process) -> None:
        pause_s = self._draw_pause_s()
        self._note(f"{process.name} is frozen for {pause_s:.2f} s")
        process.freeze()
        self._after(pause_s, process.thaw)

    def _cut(self, connection: Connection) -> None:
        pause_s = self._draw_pause_s()
        self._note(f"{connection.process.name} is cut off for {pause_s:.2f} s")
        self._world.broker.cut(connection)
        self._after(pause_s, lambda: self._world.broker.heal(connection))

    def _cut_coordinator(self) -> None:
        self._on_coordinator(lambda _: self._cut(self._world.coordinator.connection))

    def _kill_coordinator(self) -> None:
        self._on_coordinator(self._kill)
        # It starts again by itself: see World.

    def _cut_power(self) -> None:
        def strike(process: Process) -> None:
            self._note(f"the machine of {process.name} loses its power")
            self._world.disk.lose_power()
            process.kill()

        self._on_coordinator(strike)

    def _break_statement(self) -> None:
        fault, statements = self._chance.choice(tuple(DiskFault)), self._chance.randint(1, _MOST_STATEMENTS)
        self._note(f"from the {statements}. statement on: {fault}")
        self._world.disk.arm(fault, statements)

    def _fill_disk(self) -> None:
        pause_s = self._draw_pause_s()
        self._note(f"the disk is full for {pause_s:.2f} s")
        disk = self._world.disk
        disk.is_full = True
        self._after(pause_s, lambda: setattr(disk, "is_full", False))

    def _kill_broker(self, *, with_data: bool) -> None:
        if not self._world.broker.is_up:
            return
        pause_s = self._draw_pause_s()
        lost = f", and {self._world.broker.waiting} messages with it" if with_data else ""
        self._note(f"the broker is killed{lost}; it is back in {pause_s:.2f} s")
        self._world.broker.go_away(with_data=with_data)
        self._after(pause_s, self._world.broker.come_back)

    def _trouble_messages(self) -> None:
        kinds = ("lost", "doubled", "held", "misreported")
        trouble = Trouble(
            **{kind: self._chance.choice((0.02, 0.2, 0.6)) for kind in self._chance.sample(kinds, 2)}
        )
        until_s = self._draw_pause_s()
        self._note(f"for {until_s:.2f} s messages have trouble: {trouble}")
        self._world.broker.trouble = trouble

        def calm() -> None:
            if self._world.broker.trouble is trouble:
                self._world.broker.trouble = Trouble()

        self._after(until_s, calm)

    def _set_clock(self) -> None:
        processes = [connection.process for connection in self._world.broker.connections]
        if not processes:
            return
        process = self._chance.choice(processes)
        step_s = (
            self._chance.choice((-1, 1))
            * self._chance.choice((0.5, 5.0, 100.0, 5000.0))
            * self._chance.random()
        )
        self._note(f"the clock of {process.name} is set by {step_s:+.1f} s")
        process.clock.set_forward(step_s)

    def _pause(self) -> None:
        self._world.operator.pause()
        self._after(self._draw_pause_s(), self._world.operator.resume)
