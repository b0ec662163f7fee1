"""Stands between the real code and the machine: whatever asks for the time, gets that of its process.

Much of the code takes its clocks as arguments whose defaults are the functions of `time`, so this module must
be imported before that code is. As long as no simulation runs, the functions tell the real time. Random ids
and databases are simulated, too, and nothing takes any processor time: one seed has one history.
"""

import random
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.simulation.machine.process import Process

_true_now: Callable[[], float] | None = None
"""The simulated time for whoever asks outside of any process; None while no simulation runs."""


def _stand_in(
    real: Callable[[], Any], tell: Callable[[Process], Any], scale: Callable[[float], Any]
) -> Callable[[], Any]:
    def stand_in() -> Any:
        if _true_now is None:
            return real()
        process = Process.current
        return tell(process) if process is not None else scale(_true_now())

    return stand_in


def _to_ns(seconds: float) -> int:
    return int(seconds * 1e9)


time.time = _stand_in(time.time, lambda process: process.clock.wall(), float)
time.time_ns = _stand_in(time.time_ns, lambda process: _to_ns(process.clock.wall()), _to_ns)
time.monotonic = _stand_in(time.monotonic, lambda process: process.clock.monotonic(), float)
time.monotonic_ns = _stand_in(time.monotonic_ns, lambda process: _to_ns(process.clock.monotonic()), _to_ns)
time.perf_counter = _stand_in(time.perf_counter, lambda process: process.clock.monotonic(), float)
time.process_time = _stand_in(time.process_time, lambda _: 0.0, lambda _: 0.0)
time.thread_time = _stand_in(time.thread_time, lambda _: 0.0, lambda _: 0.0)


@contextmanager
def interpose(
    chance: random.Random, true_now: Callable[[], float], connect: Callable[..., sqlite3.Connection]
) -> Iterator[None]:
    """Give simulated time and chance to all code, and simulated disks to those who open a database.

    Args:
        chance: where random ids come from.
        true_now: the time for whoever asks outside of any process.
        connect: stands in for `sqlite3.connect`.
    """
    global _true_now  # noqa: PLW0603  # the functions of `time` are global, too
    replaced: list[tuple[Any, str, Any]] = [
        (secrets, "token_hex", lambda count=32: chance.randbytes(count).hex()),
        (secrets, "token_bytes", lambda count=32: chance.randbytes(count)),
        (sqlite3, "connect", connect),
    ]
    kept = [(place, name, getattr(place, name)) for place, name, _ in replaced]
    for place, name, stand_in in replaced:
        setattr(place, name, stand_in)
    _true_now = true_now
    try:
        yield
    finally:
        _true_now = None
        for place, name, original in kept:
            setattr(place, name, original)
