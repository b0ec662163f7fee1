"""A worker's share of the totals of a run: its concurrency, its connections, its highest rate.

The coordinator divides a run anew when a worker joins or leaves; each division has a number. It first sends
each worker its place in the new division, which counts beside the earlier ones: the smallest share applies.
Once all workers have settled on that, the new place counts alone. So the shares together never exceed the
total, whichever message is lost, late or doubled.
"""

import msgspec

MOST_PLACES = 8
"""The most divisions that count at a time; with more, a worker has no share until one counts alone."""
Place = tuple[int, int]
"""The rank of a worker, from 0, and the number of workers."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's place in a division of a run.

    Attributes:
        run: the id of the run.
        number: of the division; it rises.
        rank: the worker's rank among the workers of the run, from 0.
        of: how many these are.
        is_alone: whether all workers have settled on this division, so that only this place counts.
    """

    run: str
    number: int
    rank: int
    of: int
    is_alone: bool


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """A worker's confirmation that it has no more in flight than a division allows.

    Attributes:
        run: the id of the run.
        number: of the newest division that it has settled on.
    """

    run: str
    number: int


class HeldShare(msgspec.Struct, frozen=True):
    """What a worker knows of its share of one run; a new one for each `Share` that changes it.

    Attributes:
        number: of the newest division; 0 before the first.
        places: its places in the divisions that count; without any it has nothing.
        is_alone: whether only the newest division counts.
    """

    number: int = 0
    places: tuple[Place, ...] = ()
    is_alone: bool = False

    def follow(self, share: Share) -> "HeldShare":
        """Follow a share; one of an older division, or a copy, changes nothing."""
        place = share.rank, share.of
        if share.number < self.number or (share.number == self.number and not share.is_alone):
            return self
        if share.is_alone:
            return HeldShare(share.number, (place,), is_alone=True)
        # A worker without a place has no share until a division counts alone.
        places = tuple(dict.fromkeys((*self.places, place))) if self.places else ()
        return HeldShare(share.number, places if len(places) <= MOST_PLACES else ())

    @property
    def place(self) -> Place | None:
        """The newest place; None without a share."""
        return self.places[-1] if self.places else None
