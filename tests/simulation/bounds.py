"""How wide `resent_at_most` is: for each mode of a run, its ratio to what the target saw in addition."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from tests.simulation.laws import Standing
from tests.simulation.outside.target import count_seen

from oku_core.spec.spec import Spec

_ENOUGH = 3
"""A median of fewer runs says little."""


class Mode(StrEnum):
    """How a run is paced, or what it runs."""

    CLOSED = "closed"
    RATE = "rate"
    STAGES = "stages"
    MAX_RATE = "max-rate"
    LATE_SEND = "late-send"
    USER_CODE = "user-code"


@dataclass(frozen=True)
class Bound:
    """What may have been sent again in a run, and what was.

    Attributes:
        mode: of the run.
        resent_at_most: as its ledger has it at its end.
        resent: the requests that its target saw in addition to those that are accounted as sent.
    """

    mode: Mode
    resent_at_most: int
    resent: int


@dataclass
class BoundStatistics:
    """The ratios of many runs.

    Attributes:
        ratios: by mode, of the runs in which something was sent again.
        runs: by mode, how many runs there were.
    """

    ratios: dict[Mode, list[float]] = field(default_factory=dict)
    runs: dict[Mode, int] = field(default_factory=dict)

    def add(self, bounds: Iterable[Bound]) -> None:
        """Some runs have ended."""
        for bound in bounds:
            self.runs[bound.mode] = self.runs.get(bound.mode, 0) + 1
            if bound.resent:
                self.ratios.setdefault(bound.mode, []).append(bound.resent_at_most / bound.resent)

    def find_above(self, most: float) -> list[Mode]:
        """The modes whose median is above a ratio, of those that enough runs tell of."""
        return [
            mode for mode, ratios in self.ratios.items() if len(ratios) >= _ENOUGH and median(ratios) > most
        ]

    def describe(self) -> str:
        """The median of each mode, in a line."""
        return ", ".join(
            f"{mode} {median(self.ratios[mode]):.2f} ({len(self.ratios[mode])} of {self.runs[mode]})"
            for mode in Mode
            if mode in self.ratios
        )


def find_mode(spec: Spec) -> Mode:
    """The mode of a run; the rarer property decides."""
    if spec.runs_user_code:
        return Mode.USER_CODE
    if spec.is_open:
        if spec.late.duration_s is None:
            return Mode.LATE_SEND
        return Mode.STAGES if spec.stages else Mode.RATE
    return Mode.CLOSED if spec.max_rate is None else Mode.MAX_RATE


def measure_bound(spec: Spec, standing: Standing, sent: int) -> Bound:
    """The bound of a run that is over, of which the target saw so many requests."""
    return Bound(find_mode(spec), standing.resent, sent - count_seen(standing.outcomes))
