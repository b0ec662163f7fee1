"""Counts of outcomes by second, for the series of a run: a state that is sent until it is confirmed.

They are differences of the outcomes of an execution, taken whenever a second has passed and with each
checkpoint, so at every checkpoint all counts together are the outcomes.
"""

from collections.abc import Mapping, Sequence

from oku_core.accounting.outcome import build_no_counts


class SecondCounts:
    """What ended in each second of one execution, as far as nobody has confirmed it."""

    def __init__(self) -> None:
        self._seen = build_no_counts()
        self._second = 0
        self._counts: dict[int, list[int]] = {}
        self._changed: dict[int, int] = {}

    def count(self, outcomes: Sequence[int], now: float, sequence: int) -> None:
        """Add what is new since the last call to the second of that call.

        Args:
            outcomes: the counts of the execution so far.
            now: Unix time.
            sequence: the number of the next checkpoint, the first to tell of it.
        """
        if self._seen != outcomes:
            second = self._second or int(now)
            counts = self._counts.setdefault(second, build_no_counts())
            for place, (count, seen) in enumerate(zip(outcomes, self._seen, strict=True)):
                counts[place] += count - seen
            self._changed[second] = sequence
            self._seen = list(outcomes)
        self._second = max(self._second, int(now))

    def is_over(self, now: float) -> bool:
        """Whether the second of the last call is over."""
        return int(now) > self._second

    def list_unconfirmed(self) -> dict[int, list[int]]:
        """Each second that has changed since what was confirmed, with what it has in all."""
        return {second: list(self._counts[second]) for second in sorted(self._changed)}

    def confirm(self, sequence: int) -> None:
        """Forget what the checkpoint of this number has told; only the last second may still grow."""
        for second in [second for second, changed in self._changed.items() if changed <= sequence]:
            del self._changed[second]
            if second < self._second:
                del self._counts[second]
        for second in [each for each in self._counts if each < self._second and each not in self._changed]:
            del self._counts[second]


class SentCounts:
    """How many requests of one execution were sent in each second, as far as nobody has confirmed it."""

    def __init__(self) -> None:
        self._told: dict[int, int] = {}
        self._changed: dict[int, int] = {}

    def note_changes(self, counts: Mapping[int, int], sequence: int) -> bool:
        """A checkpoint is about to be built: whether anything has changed since the one before.

        Args:
            counts: the counts so far.
            sequence: the number of the checkpoint.
        """
        changed = [second for second, count in counts.items() if self._told.get(second) != count]
        self._changed |= dict.fromkeys(changed, sequence)
        self._told = dict(counts)
        return bool(changed)

    def list_unconfirmed(self) -> dict[int, int]:
        """Each second that has changed since what was confirmed, with what it has in all."""
        return {second: self._told[second] for second in sorted(self._changed)}

    def confirm(self, sequence: int) -> None:
        """Leave out what the checkpoint of this number has told."""
        self._changed = {second: changed for second, changed in self._changed.items() if changed > sequence}
