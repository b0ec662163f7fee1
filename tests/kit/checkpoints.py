"""Checkpoints that differ in a few fields from another one."""

from typing import Any

import msgspec

from oku_core.messaging.checkpoint import Checkpoint, LeaseFigures


def change_checkpoint(checkpoint: Checkpoint, **changes: Any) -> Checkpoint:
    """A checkpoint with other fields, and other figures; each is given by its name."""
    figures = {name: changes.pop(name) for name in LeaseFigures.__struct_fields__ if name in changes}
    changes.setdefault("figures", msgspec.structs.replace(checkpoint.figures, **figures))
    return msgspec.structs.replace(checkpoint, **changes)
