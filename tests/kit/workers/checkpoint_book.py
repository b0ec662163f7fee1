"""The coordinator's end of checkpoints in memory: takes them as the ledger does.

It fails if a checkpoint can't be true.
"""

from dataclasses import dataclass, field

from oku_core.accounting.index_ranges import IndexRanges
from oku_core.accounting.outcome import OUTCOMES, build_no_counts
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, Part
from oku_core.messaging.checkpoint_faults import find_fault
from oku_core.messaging.lease import Lease


@dataclass
class LeaseAccount:
    """What is known of one lease: its newest checkpoint, its part and its seconds."""

    ranges: IndexRanges
    newest: Checkpoint | None = None
    part: Part = field(default_factory=Part)
    per_second: dict[int, list[int]] = field(default_factory=dict)

    @property
    def checkpoint(self) -> Checkpoint:
        """The newest checkpoint."""
        assert self.newest is not None
        return self.newest

    @property
    def start(self) -> int:
        """The first index."""
        return self.ranges.ranges[0][0] if self.ranges.ranges else 0

    @property
    def done(self) -> int:
        """The first index that was not taken, in a lease of one range."""
        return self.start + self.checkpoint.done

    @property
    def given_back(self) -> list[int]:
        """The indices that were in flight; in a final checkpoint they were given back."""
        return self.ranges.list_indices(self.checkpoint.in_flight)

    @property
    def outcomes(self) -> list[int]:
        """The counts of outcomes."""
        return self.part.outcomes

    def take(self, checkpoint: Checkpoint) -> None:
        """Take a checkpoint, as far as it is newer; fail if it does not contain the one before it."""
        assert find_fault(checkpoint, self.ranges.length) is None
        newest = self.newest
        if newest is not None and checkpoint.sequence <= newest.sequence:
            assert checkpoint.sequence < newest.sequence or checkpoint == newest
            return
        if newest is not None:
            assert not newest.is_final or checkpoint.is_final
            assert newest.done <= checkpoint.done
            assert newest.end >= checkpoint.end
            assert newest.figures.cpu_s <= checkpoint.figures.cpu_s
            landed = set(range(newest.done)) - set(newest.in_flight)
            assert not landed & set(checkpoint.in_flight)
        self.newest = checkpoint
        if checkpoint.parts:
            [part] = checkpoint.parts
            assert all(old <= new for old, new in zip(self.part.outcomes, part.outcomes, strict=True))
            self.part = part
            self.per_second |= part.per_second
        assert sum(self.part.outcomes) == checkpoint.covered
        assert [sum(counts) for counts in zip(build_no_counts(), *self.per_second.values(), strict=True)] == (
            self.part.outcomes
        )


class CheckpointBook:
    """The accounts of leases, by their ids."""

    def __init__(self) -> None:
        self.accounts: dict[str, LeaseAccount] = {}
        self.batches: list[CheckpointBatch] = []

    def open(self, lease: Lease) -> LeaseAccount:
        """Expect checkpoints of a lease."""
        return self.accounts.setdefault(lease.id, LeaseAccount(lease.build_ranges()))

    def take(self, batch: CheckpointBatch) -> dict[str, int]:
        """Take a message; what can be confirmed of it."""
        self.batches.append(batch)
        for checkpoint in batch.checkpoints:
            self.accounts[checkpoint.lease].take(checkpoint)
        return {checkpoint.lease: checkpoint.sequence for checkpoint in batch.checkpoints}


def count(account: LeaseAccount) -> dict[str, int]:
    """The outcomes that occurred."""
    return {outcome.value: n for outcome, n in zip(OUTCOMES, account.outcomes, strict=True) if n}
