"""The share of a worker that is the only one of its run."""

from oku_core.messaging.share import Share


def build_whole_share(run: str) -> Share:
    """The share of all of a run."""
    return Share(run=run, number=1, rank=0, of=1, is_alone=True)
