"""What a benchmark is given, and what it answers: tables, and goals that are met or not."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

from docs.tools.generated_parts import build_table

_T = TypeVar("_T")
NONE = "–"  # noqa: RUF001  # typography


class BenchmarkError(Exception):
    """A benchmark could not be measured."""


def log(text: str) -> None:
    """Report progress."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is measured."""

    folder: Path
    is_small: bool = False
    rounds: int = 5
    only: Sequence[str] = ()
    baseline: Path | None = None
    requests: int = 0

    def choose(self, full: _T, small: _T) -> _T:
        """One of two sizes."""
        return small if self.is_small else full

    def pick(self, cases: Iterable[str]) -> list[str]:
        """The cases to play, in their order."""
        known = list(cases)
        if unknown := [name for name in self.only if name not in known]:
            raise BenchmarkError(f"{unknown[0]} is not one of {', '.join(known)}")
        return [name for name in known if not self.only or name in self.only]

    def make_folder(self, name: str) -> Path:
        """Make a new folder for a part of the benchmark."""
        path = self.folder / name
        path.mkdir(parents=True)
        return path


@dataclass(frozen=True)
class Table:
    """A table of Markdown."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Goal:
    """What Oku was built for, and what was measured; a miss of an exact goal is a defect on any machine."""

    text: str
    result: str
    is_met: bool
    is_exact: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """The answer of a benchmark."""

    tables: Sequence[Table]
    goals: Sequence[Goal] = ()
    judged: Sequence[Goal] = ()  # that the tables show themselves
    notes: Sequence[str] = ()

    @property
    def misses(self) -> list[Goal]:
        """The exact goals that were missed."""
        return [goal for goal in (*self.goals, *self.judged) if goal.is_exact and not goal.is_met]

    def build_markdown(self) -> str:
        """Tables, notes and goals, as the page shows them."""
        blocks = [build_table(table.head, table.rows) for table in self.tables]
        blocks += self.notes
        if self.goals:
            rows = [(goal.text, goal.result, "yes" if goal.is_met else "**no**") for goal in self.goals]
            blocks.append(build_table(("goal", "result", "met"), rows))
        return "\n\n".join(blocks)


class Spread(NamedTuple):
    """One figure over all rounds."""

    median: float
    low: float
    high: float

    def format(self, pattern: str = ",.0f") -> str:
        """`1,200 (1,100-1,300)`, or one number if the rounds agree."""
        if f"{self.low:{pattern}}" == f"{self.high:{pattern}}":
            return f"{self.median:{pattern}}"
        return f"{self.median:{pattern}} ({self.low:{pattern}}–{self.high:{pattern}})"  # noqa: RUF001  # typography


def build_spread(figures: Iterable[float]) -> Spread:
    """Median and range of at least one figure."""
    values = list(figures)
    return Spread(median(values), min(values), max(values))


def build_ratios(figures: Iterable[float], others: Iterable[float]) -> Spread:
    """Ratios round by round: what changes from round to round changes both figures alike."""
    return build_spread(one / other for one, other in zip(figures, others, strict=True))
