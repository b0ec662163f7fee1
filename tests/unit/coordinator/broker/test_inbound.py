from oku_coordinator.broker.inbound import group_batches
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, Part


def test_checkpoints_of_very_many_accounts_are_received_in_several_transactions() -> None:
    """Each of at most 100 accounts, or of one batch, in the order of the batches."""
    batches = [_build_batch(range(begin, end)) for begin, end in ((0, 1), (1, 60), (40, 100), (99, 101))]
    assert list(group_batches(batches)) == [batches[:3], batches[3:]]
    large = [_build_batch(range(200)) for _ in range(2)]
    assert list(group_batches(large)) == [large[:1], large[1:]]


def test_so_are_those_of_very_many_workers() -> None:
    """Each of at most 500 parts, though all are of one account."""
    batches = [_build_batch(range(1)) for _ in range(501)]
    assert list(group_batches(batches)) == [batches[:500], batches[500:]]


def _build_batch(names: range) -> CheckpointBatch:
    checkpoint = Checkpoint(
        lease="r1-1", sequence=1, done=0, end=0, parts=[Part(name=f"t{number}") for number in names]
    )
    return CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[checkpoint])
