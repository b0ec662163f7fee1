"""Watches a process, or all of a stack, from outside: what it uses and has sent, twenty times a second."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.target import Target
from oku_benchmarks.measuring.vitals import Vitals, read_vitals
from oku_cli.process.child import Child

LOOK_S = 0.05


def look_on(_: "Observation") -> None:
    """What most do at a look: nothing."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One look.

    Args:
        at: monotonic seconds.
        sent: requests that reached the target since the observer was made.
        pids: of the processes that are looked at, by name.
        vitals: of those of them that live.
    """

    at: float
    sent: int
    pids: Mapping[str, int]
    vitals: Mapping[str, Vitals]


@dataclass(frozen=True)
class Window:
    """What lies between two looks."""

    begin: Observation
    end: Observation

    @property
    def length_s(self) -> float:
        """How long it is."""
        return self.end.at - self.begin.at

    @property
    def sent(self) -> int:
        """Requests in it."""
        return self.end.sent - self.begin.sent

    @property
    def rate_rps(self) -> float:
        """Requests per second in it."""
        return self.sent / self.length_s

    def measure_cpu_s(self, name: str) -> float:
        """Processor time that a process used in it."""
        return self.end.vitals[name].cpu_s - self.begin.vitals[name].cpu_s


class Observer:
    """Looks at processes and their target, and keeps what it saw.

    Args:
        target: what counts the requests.
        find_pids: the processes to look at, by name; asked at every look.
    """

    def __init__(self, target: Target, find_pids: Callable[[], Mapping[str, int]]) -> None:
        self._target = target
        self._find_pids = find_pids
        self._sent_before = target.read_served()
        self.samples: list[Observation] = []

    def watch(
        self,
        child: Child,
        timeout_s: float,
        look_s: float = LOOK_S,
        act: Callable[[Observation], None] = look_on,
    ) -> None:
        """Look until `child` has ended; `BenchmarkError` when it fails or takes too long.

        Args:
            child: what is watched.
            timeout_s: longest time of it.
            look_s: between two looks.
            act: called with every look.
        """
        deadline = time.monotonic() + timeout_s
        while (code := child.find_death()) is None:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{child.name} did not end within {timeout_s:.0f} s")
            sample = self._look()
            self.samples.append(sample)
            act(sample)
            time.sleep(look_s)
        if code != 0:
            raise BenchmarkError(f"{child.name} ended with {code}: {child.read_last_line()}")

    def count_sent(self) -> int:
        """Requests that reached the target by now."""
        return self._target.read_served() - self._sent_before

    def _look(self) -> Observation:
        sent = self.count_sent()
        at = time.monotonic()
        pids = self._find_pids()
        vitals = {name: read_vitals(pid) for name, pid in pids.items()}
        return Observation(
            at=at,
            sent=sent,
            pids=pids,
            vitals={name: value for name, value in vitals.items() if value is not None},
        )


def cut_window(samples: Sequence[Observation], sent_from: float, sent_to: float) -> Window:
    """From the first look with at least `sent_from` requests to the first with at least `sent_to`."""
    begin = next((sample for sample in samples if sample.sent >= sent_from), None)
    end = next((sample for sample in samples if sample.sent >= sent_to), None)
    if begin is None or end is None or end.at <= begin.at:
        raise BenchmarkError(f"no window from {sent_from:.0f} to {sent_to:.0f} requests: it ended too soon")
    return Window(begin, end)


def find_peak_mb(samples: Sequence[Observation], name: str) -> float:
    """The largest memory of a process until it was last seen."""
    return round(max(sample.vitals[name].peak_rss_mb for sample in samples if name in sample.vitals), 1)


def find_common_peak_mb(samples: Sequence[Observation]) -> float:
    """The largest memory of all processes together in any look; pages that they share count for each."""
    return round(max(sum(vitals.rss_mb for vitals in sample.vitals.values()) for sample in samples), 1)


def find_last_cpu_s(samples: Sequence[Observation], name: str) -> float:
    """Processor time of a process when it was last seen."""
    return round(max(sample.vitals[name].cpu_s for sample in samples if name in sample.vitals), 2)
