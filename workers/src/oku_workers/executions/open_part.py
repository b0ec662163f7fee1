"""One part of an open lease: the counts of one target in one phase, as checkpoints carry them.

The counts by second are differences of its outcomes, taken whenever a second has passed and with each
checkpoint. So at every checkpoint, the seconds add up to the outcomes. A second is sent until it is
confirmed.
"""

from collections.abc import Mapping, Sequence

from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.checkpoint import Part
from oku_workers.executions.tally import Tally


class SecondCounts:
    """Outcomes of one execution by second, without the confirmed ones."""

    def __init__(self) -> None:
        self._seen = build_no_counts()
        self._second = 0
        self._counts: dict[int, list[int]] = {}
        self._changed: dict[int, int] = {}

    def count(self, outcomes: Sequence[int], now: float, sequence: int) -> None:
        """Add the outcomes since the last call to the second of that call.

        Args:
            outcomes: the counts of the execution so far.
            now: Unix time.
            sequence: the number of the next checkpoint, the first to contain them.
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
        """The total of each second that has changed since the confirmed checkpoint."""
        return {second: list(self._counts[second]) for second in sorted(self._changed)}

    def confirm(self, sequence: int) -> None:
        """Forget the seconds of the checkpoint with this number; only the last one may still grow."""
        for second in [second for second, changed in self._changed.items() if changed <= sequence]:
            del self._changed[second]
            if second < self._second:
                del self._counts[second]
        for second in [each for each in self._counts if each < self._second and each not in self._changed]:
            del self._counts[second]


class SentCounts:
    """Requests of one execution sent by second, without the confirmed ones."""

    def __init__(self) -> None:
        self._told: dict[int, int] = {}
        self._changed: dict[int, int] = {}

    def record_changes(self, counts: Mapping[int, int], sequence: int) -> bool:
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
        """The total of each second that has changed since the confirmed checkpoint."""
        return {second: self._told[second] for second in sorted(self._changed)}

    def confirm(self, sequence: int) -> None:
        """Leave out the counts of the checkpoint with this number."""
        self._changed = {second: changed for second, changed in self._changed.items() if changed > sequence}


class OpenPart:
    """A tally with the state that the coordinator has confirmed.

    Args:
        tally: counts the requests.

    Attributes:
        changed_in: the number of the first checkpoint that has all of it; 0 while it is empty.
    """

    def __init__(self, tally: Tally) -> None:
        self.changed_in = 0
        self._tally = tally
        self._told = build_no_counts()
        self._seconds = SecondCounts()
        self._sent = SentCounts()

    def count_second(self, now: float, sequence: int, *, is_due: bool) -> None:
        """Assign new outcomes to their second, if one is over or a checkpoint is due.

        Args:
            now: Unix time.
            sequence: the number of the next checkpoint, the first to contain them.
            is_due: whether that checkpoint is due.
        """
        if is_due or self._seconds.is_over(now):
            self._seconds.count(self._tally.outcomes, now, sequence)

    def record_changes(self, sequence: int) -> bool:
        """A checkpoint of this number is about to be built; whether anything has ended since the last."""
        has_sent = self._sent.record_changes(self._tally.sent_per_second, sequence)
        has_ended = self._tally.outcomes != self._told
        if has_ended or has_sent:
            self._told, self.changed_in = list(self._tally.outcomes), sequence
        return has_ended

    def confirm(self, sequence: int) -> None:
        """The coordinator has dealt with the checkpoint of this number."""
        self._seconds.confirm(sequence)
        self._sent.confirm(sequence)

    def build(self) -> Part:
        """Build its part of a checkpoint."""
        tally = self._tally
        snapshots = ((time, distribution.build_snapshot()) for time, distribution in tally.times.items())
        return Part(
            phase=tally.phase,
            name=tally.name,
            outcomes=list(tally.outcomes),
            statuses={str(status): count for status, count in tally.statuses.items()},
            not_sent=list(tally.not_sent),
            bytes_received=tally.bytes_received,
            per_second=self._seconds.list_unconfirmed(),
            sent_per_second=self._sent.list_unconfirmed(),
            reasons=tally.failures.build_reasons(),
            failed=tally.failures.build_failed(),
            failed_reasons=tally.failures.build_failed_reasons(),
            times={time: snapshot for time, snapshot in snapshots if snapshot.buckets},
        )
