"""The counting server as the target of a case, and what its samples say of the window of its clients."""

import sys
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.target_process import TargetProcess
from oku_benchmarks.stacks.counting_server import SAMPLE_S, Behaviour, Sample

_DECODE = msgspec.json.Decoder(Sample).decode
_FULL = 0.97
"""Of the window in the mean of a second."""


class CountingTarget(TargetProcess):
    """Serves from entering to leaving.

    Args:
        folder: for its files.
        behaviour: how it answers.
    """

    def __init__(self, folder: Path, behaviour: Behaviour) -> None:
        folder.mkdir()
        self.behaviour = behaviour
        self._folder = folder
        command = (
            sys.executable, "-m", "oku_benchmarks.stacks.counting_server",
            msgspec.json.encode(behaviour).decode(), str(folder),
        )  # fmt: skip
        super().__init__(command, folder / "target.log", folder / "address")

    def read(self) -> list[Sample]:
        """Everything that it has written so far."""
        return [_DECODE(line) for line in self._read_lines()]

    def read_last(self) -> Sample:
        """The newest sample; at most a tenth of a second old, if the machine is not busy."""
        return _DECODE(self._read_lines()[-1])

    def wait_for_answers(self, answered: int, timeout_s: float = 120.0) -> None:
        """Wait until so many requests are answered; `BenchmarkError` if that takes longer."""
        deadline = time.monotonic() + timeout_s
        while self.read_last().answered < answered:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{answered:,} requests were not answered within {timeout_s:.0f} s")
            time.sleep(SAMPLE_S)

    def _read_lines(self) -> list[bytes]:
        # The last line may not be there as a whole.
        return (self._folder / "samples.jsonl").read_bytes().split(b"\n")[:-1]


class Seconds(msgspec.Struct, frozen=True, kw_only=True):
    """The whole seconds of a run in which indices were untaken, by how many slots worked.

    Attributes:
        working: the mean of each second.
        window: all slots of all workers.
    """

    working: list[float]
    window: int

    @property
    def full_share(self) -> float:
        """The share of seconds in which the window was full."""
        return sum(mean >= _FULL * self.window for mean in self.working) / max(1, len(self.working))

    @property
    def longest_idle_s(self) -> int:
        """The longest time in a row in which less than half of the window worked."""
        runs = (len(list(group)) for is_low, group in groupby(self.working, self._is_low) if is_low)
        return max(runs, default=0)

    def _is_low(self, mean: float) -> bool:
        return mean < self.window / 2


def find_seconds(samples: Sequence[Sample], indices: int, window: int) -> Seconds:
    """The seconds from the first request until all indices have come.

    Args:
        samples: of the target.
        indices: how many the run has.
        window: all slots of all workers.
    """
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
    return Seconds(working=means, window=window)


def find_duration_s(samples: Sequence[Sample], received: int = 0) -> float:
    """Seconds from the first request, or from the one after `received`, until none waits for an answer."""
    begin = next(sample.at for sample in samples if sample.received > received)
    end = next(sample.at for sample in reversed(samples) if sample.open)
    return end - begin


def count_twice(sample: Sample) -> int:
    """How many requests came for an index that had come before."""
    return sample.received - sample.distinct
