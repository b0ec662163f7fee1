from oku_coordinator.broker.inbound import group_batches
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, Part


def test_checkpoints_of_very_many_parts_are_received_in_several_transactions() -> None:
    """Each of at most 100 parts, or of one batch, in the order of the batches."""
    batches = [_build_batch(parts) for parts in (1, 40, 59, 1, 120, 1, 99)]
    assert list(group_batches(batches)) == [batches[:3], batches[3:4], batches[4:5], batches[5:]]


def _build_batch(parts: int) -> CheckpointBatch:
    checkpoint = Checkpoint(
        lease="r1-1", sequence=1, done=0, end=0, parts=[Part(name=f"t{number}") for number in range(parts)]
    )
    return CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[checkpoint])
