"""Who speaks."""

from typing import NamedTuple


class WorkerIdentity(NamedTuple):
    """The name of a worker, which outlives its process, and the incarnation, which does not."""

    name: str
    incarnation: str
