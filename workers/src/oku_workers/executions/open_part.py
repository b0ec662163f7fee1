"""One part of a lease that a worker has in hand: what its checkpoints tell of one target in one phase."""

from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.checkpoint import Part
from oku_workers.executions.second_counts import SecondCounts, SentCounts
from oku_workers.executions.tally import Tally


class OpenPart:
    """A tally with what the coordinator knows of it.

    Args:
        tally: counts the requests.

    Attributes:
        changed_in: the number of the first checkpoint that told all of it; 0 while it is empty.
    """

    def __init__(self, tally: Tally) -> None:
        self.changed_in = 0
        self._tally = tally
        self._told = build_no_counts()
        self._seconds = SecondCounts()
        self._sent = SentCounts()

    def count_second(self, now: float, sequence: int, *, is_due: bool) -> None:
        """Assign what has ended to its second, if one is over or a checkpoint is due.

        Args:
            now: Unix time.
            sequence: the number of the next checkpoint, the first to tell of it.
            is_due: whether that checkpoint is due.
        """
        if is_due or self._seconds.is_over(now):
            self._seconds.count(self._tally.outcomes, now, sequence)

    def note_changes(self, sequence: int) -> bool:
        """A checkpoint of this number is about to be built; whether anything has ended since the last."""
        has_sent = self._sent.note_changes(self._tally.sent_per_second, sequence)
        has_ended = self._tally.outcomes != self._told
        if has_ended or has_sent:
            self._told, self.changed_in = list(self._tally.outcomes), sequence
        return has_ended

    def confirm(self, sequence: int) -> None:
        """The coordinator has dealt with the checkpoint of this number."""
        self._seconds.confirm(sequence)
        self._sent.confirm(sequence)

    def build(self) -> Part:
        """What a checkpoint tells of it."""
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
            times={time: snapshot for time, snapshot in snapshots if snapshot.buckets},
        )
