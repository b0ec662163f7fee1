"""What is brought to Loki, and what Loki will never take."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One line.

    Attributes:
        labels: names and values; entries with the same labels are one stream.
        at_ns: its Unix time. Two entries with the same labels, time and line are the same one.
        line: its text.
    """

    labels: tuple[tuple[str, str], ...]
    at_ns: int
    line: str


@dataclass(frozen=True)
class Refusal:
    """Lines of one stream that Loki has refused for good.

    Attributes:
        entries: these lines. When Loki took a part of a batch and can't be asked which, they are all of it.
        status: of Loki's answer.
        reason: Loki's own words, in one printable line of bounded length.
    """

    entries: Sequence[Entry]
    status: int
    reason: str

    @property
    def is_early(self) -> bool:
        """Whether Loki would take them later, or with the time of a clock that is right.

        They are further in the future than its `creation_grace_period` allows (Loki, pkg/validation).
        """
        return self.status == 400 and "timestamp too new" in self.reason
