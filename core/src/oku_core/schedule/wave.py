"""A wave: some seconds of an open schedule, dealt out to all workers in lanes.

An index is the rank of an arrival in the schedule; a coordinate is its place in the ledger. Lane k of W has
every W-th arrival of the wave from the k-th on, so that the arrivals of all lanes interleave exactly as if
one process sent them; its coordinates are contiguous, so that a lease of them is a range.
"""

import msgspec


class Wave(msgspec.Struct, frozen=True):
    """The indices, and the coordinates, `begin <= i < begin + count`.

    Attributes:
        begin: how many arrivals the schedule has before the wave.
        count: how many arrivals are in it; at least 1.
        lanes: among how many lanes they are divided.
        block: the number of its first block (`Schedule.blocks`).
        blocks: how many of its arrivals lie before the end of each of its blocks; the last is `count`.

    Raises:
        ValueError: the numbers contradict each other.
    """

    begin: int
    count: int
    lanes: int
    block: int
    blocks: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the numbers, which may come from a message."""
        rising = [0, *self.blocks, self.count]
        is_sound = self.begin >= 0 and self.block >= 0 and self.lanes >= 1 and self.count >= 1
        if not is_sound or rising != sorted(rising) or self.blocks[-1:] != (self.count,):
            raise ValueError(f"a wave from {self.begin} of {self.count} in {self.lanes} lanes is not sound")

    @property
    def stop(self) -> int:
        """The first index, and coordinate, behind the wave."""
        return self.begin + self.count

    @property
    def next_block(self) -> int:
        """The number of the first block behind the wave."""
        return self.block + len(self.blocks)

    def offset(self, lane: int) -> int:
        """How many arrivals the lanes before a lane have."""
        share, rest = divmod(self.count, self.lanes)
        return lane * share + min(lane, rest)

    def lane_length(self, lane: int) -> int:
        """How many arrivals a lane has."""
        return self.offset(lane + 1) - self.offset(lane)

    def lane_range(self, lane: int) -> tuple[int, int]:
        """The coordinates `[start, stop)` of a lane."""
        return self.begin + self.offset(lane), self.begin + self.offset(lane + 1)

    def lane_of(self, coordinate: int) -> int:
        """The lane that a coordinate is in."""
        share, rest = divmod(self.count, self.lanes)
        rank = coordinate - self.begin
        long = rest * (share + 1)
        return rank // (share + 1) if rank < long else rest + (rank - long) // share

    def count_in_lane(self, lane: int, rank: int) -> int:
        """How many of the wave's first `rank` arrivals a lane has."""
        return -((lane - rank) // self.lanes)
