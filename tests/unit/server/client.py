"""A client that talks to a service without a network, and a clock that the test moves on."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import repeat
from random import Random
from typing import Any

from oku_core.spec.values.delay import parse_delay
from oku_server.behaviour.fault import FaultRates
from oku_server.behaviour.planner import NO_OVERRIDES, Planner
from oku_server.behaviour.timing_wheel import TimingWheel
from oku_server.counts.count_table import EMPTY_TABLE, CountTable, read_count
from oku_server.counts.run_registry import EMPTY_REGISTRY, RunRegistry
from oku_server.http.admin import Description
from oku_server.http.request_timeouts import RequestTimeouts
from oku_server.http.server_connection import ServerConnection
from oku_server.http.service import DelayService

LINES = b"Host: a\r\nOku-Run: r1\r\n\r\n"
GET = b"GET /1 HTTP/1.1\r\n" + LINES
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nDelay: 0\r\n\r\nHello, World!"


class Client(asyncio.Transport):
    """A client on a connection of its own that keeps what the server writes."""

    def __init__(self, service: DelayService) -> None:
        super().__init__()
        self.written = b""
        self.closed = self.was_reset = False
        self.is_read = True
        self.connection = ServerConnection(service)
        self.connection.connection_made(self)

    def say(self, *pieces: bytes) -> bytes:
        """Send `pieces` one by one, as far as the server reads them, and return what it answers at once."""
        before = len(self.written)
        for piece in pieces:
            if not self.closed:
                self.connection.data_received(piece)
        return self.written[before:]

    def leave(self) -> None:
        """Close the connection from the client's side."""
        self.connection.connection_lost(None)

    def write(self, data: Any) -> None:
        """Keep what the server writes."""
        assert not self.closed
        self.written += data

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Keep several buffers that the server writes."""
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        """Note that the server stops reading for now."""
        assert self.is_read
        self.is_read = False

    def resume_reading(self) -> None:
        """Note that the server reads again."""
        assert not self.is_read
        self.is_read = True

    def is_closing(self) -> bool:
        """Whether the server has closed the connection."""
        return self.closed

    def close(self) -> None:
        """Note that the server closes the connection."""
        self.closed = True

    def abort(self) -> None:
        """Note that the server resets the connection."""
        self.closed = self.was_reset = True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Give this client in place of its socket."""
        return self if name == "socket" else default

    def setsockopt(self, *_: Any) -> None:
        """Accept the option that makes closing the socket reset the connection."""


class Timer:
    """A timer that calls a function when it is due."""

    def __init__(self, time: "Time", due_s: float, callback: Callable[[], None]) -> None:
        self._time = time
        self.due_s = due_s
        self.ring = callback

    def cancel(self) -> None:
        """Cancel the timer."""
        self._time.timers.remove(self)


class Time:
    """A clock with timers."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.timers: list[Timer] = []

    def monotonic(self) -> float:
        """The time in seconds."""
        return self.now_s

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` after `delay_s` seconds."""
        self.timers.append(Timer(self, self.now_s + delay_s, callback))
        return self.timers[-1]

    def pass_s(self, seconds: float, step_s: float = 0.001) -> None:
        """Let time pass in steps of `step_s`."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += step_s
            for timer in [timer for timer in self.timers if timer.due_s <= self.now_s]:
                self.timers.remove(timer)
                timer.ring()


class Chance(Random):
    """Draws these numbers, one after the other."""

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        super().__init__()
        self._numbers = iter(numbers)

    def random(self) -> float:
        """Draw the next number; there must be one."""
        return next(self._numbers)


class Server:
    """A service with its clock and its counts."""

    def __init__(self, *, delay: str = "0s", body: bytes = b"Hello, World!", **rates: float) -> None:
        self.block = bytearray(EMPTY_TABLE)
        self.time = Time()
        planner = Planner(parse_delay(delay), FaultRates(**rates), 0, Chance(repeat(0.0)))
        wheel = TimingWheel(self.time)
        request_timeouts = RequestTimeouts(self.time)
        table = CountTable(self.block, build_registry())
        self.service = DelayService(planner, body, table, wheel, request_timeouts, self.describe)

    def connect(self) -> Client:
        """Open a new connection."""
        return Client(self.service)

    def connect_known(self) -> Client:
        """Open a new connection to a server that has cached the lines of `GET`, which counts nothing."""
        self.service.head_cache.add(GET, "r1", self.service.find_responses(NO_OVERRIDES).find_plain)
        return self.connect()

    def count(self, run: str) -> int:
        """How many requests of a run the server has received."""
        return read_count(self.block, run)

    def describe(self, run: str, *, announces: bool) -> Description:
        """Describe a run as the process of a server does."""
        served = self.count(run)
        return {
            "run": run, "served": served, "store": "s", "kept": announces, "forgotten": 0, "processes": []
        }  # fmt: skip


def build_registry() -> RunRegistry:
    """Build a registry without any run."""
    return RunRegistry(bytearray(EMPTY_REGISTRY), -1)
