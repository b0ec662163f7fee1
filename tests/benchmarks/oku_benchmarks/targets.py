"""What load generators send to: our own servers, in processes of their own, that count what they receive."""

import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Protocol, Self

import msgspec

from oku_benchmarks.counting_server import Behaviour, Sample
from oku_benchmarks.report import BenchmarkError
from oku_cli.process.child import Child
from oku_server.counts.count_store import read_served
from oku_server.counts.count_table import NO_RUN

_READY_S = 15.0
_END_S = 5.0
_DECODE = msgspec.json.Decoder(Sample).decode
_FULL = 0.97  # of the window, in the mean of a second


class Target(Protocol):
    """A server that counts what it receives."""

    url: str
    """Template of its URLs, with `{i}` for the index."""

    @property
    def pid(self) -> int:
        """Its process."""

    def read_served(self) -> int:
        """How many requests it has received."""


@dataclass
class Place:
    """One URL of a server as a target of its own, with the server's process and count."""

    url: str
    pid: int
    read_served: Callable[[], int]


class TargetProcess:
    """A server that writes its address to a file; it serves from entering to leaving."""

    def __init__(self, command: Sequence[str], folder: Path, ready: Path) -> None:
        self._ready = ready
        self._child = Child("target", command, folder / "target.log", os.environ)
        self.url = ""

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    @property
    def base(self) -> str:
        """Its URL without a path."""
        return self.url.removesuffix("/{i}")

    def __enter__(self) -> Self:
        """Start it and wait until it listens."""
        self._child.start()
        deadline = time.monotonic() + _READY_S
        while not self._ready.exists():
            if time.monotonic() > deadline or self._child.find_death() is not None:
                self._child.kill()
                raise BenchmarkError(f"the target does not start: {self._child.read_last_line()}")
            time.sleep(0.02)
        self.url = f"http://{self._ready.read_text().strip()}/{{i}}"
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._child.terminate()
        if not self._child.wait(_END_S):
            self._child.kill()
            self._child.wait(_END_S)


class DelayServer(TargetProcess):
    """`oku server` with one process."""

    def __init__(self, folder: Path, delay: str = "0s", *flags: str) -> None:
        folder.mkdir(parents=True)
        self._counts, ready = folder / "counts", folder / "address"
        command = (
            sys.executable, "-m", "oku_cli", "server", "--port", "0", "--processes", "1", "--delay", delay,
            "--counts-dir", str(self._counts), "--ready-file", str(ready), *flags,
        )  # fmt: skip
        super().__init__(command, folder, ready)

    def read_served(self) -> int:
        """How many requests it has received, read from shared memory: it does not notice."""
        return read_served(self._counts, NO_RUN)


class CountingTarget(TargetProcess):
    """`counting_server`, which tells indices apart."""

    def __init__(self, folder: Path, behaviour: Behaviour) -> None:
        folder.mkdir(parents=True)
        self._samples = folder / "samples.jsonl"
        encoded = msgspec.json.encode(behaviour).decode()
        command = (sys.executable, "-m", "oku_benchmarks.counting_server", encoded, str(folder))
        super().__init__(command, folder, folder / "address")

    def read(self) -> list[Sample]:
        """All samples so far."""
        return [_DECODE(line) for line in self._read_lines()]

    def read_last(self) -> Sample:
        """The newest sample, at most a tenth of a second old unless the machine is busy."""
        return _DECODE(self._read_lines()[-1])

    def read_served(self) -> int:
        """How many requests it has received."""
        return self.read_last().received

    def _read_lines(self) -> list[bytes]:
        return self._samples.read_bytes().split(b"\n")[:-1]  # the last line may not be complete


def find_full_seconds(samples: Sequence[Sample], indices: int, window: int) -> tuple[int, int]:
    """How many whole seconds until all indices have come have a full window, and how many there are."""
    begin = next((sample.at for sample in samples if sample.received), None)
    if begin is None:
        raise BenchmarkError("no request reached the target")
    kept = [sample for sample in samples if sample.at >= begin]
    end = next((sample.at for sample in kept if sample.distinct >= indices), kept[-1].at)
    means = [
        fmean(sample.working for sample in group)
        for second, group in groupby(kept, lambda sample: int(sample.at - begin))
        if begin + second + 1 <= end
    ]
    return sum(mean >= _FULL * window for mean in means), len(means)


def find_duration_s(samples: Sequence[Sample]) -> float:
    """Seconds from the first request until none waits for an answer."""
    begin = next(sample.at for sample in samples if sample.received)
    return next(sample.at for sample in reversed(samples) if sample.open) - begin


def pick_port() -> int:
    """A port of loopback that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
