"""The request space in equal parts, and how much of each is accounted, leased, pending or was taken back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oku_core.accounting.interval import Slice, SliceState

COVERAGE_PARTS = 50
AGAIN = "again"
"""The name of ranges that were taken back and may have been sent; the other names are states of slices."""


class Coverage:
    """A request space up to `extent` in equal parts, with how much of each is in which state."""

    def __init__(self, extent: int) -> None:
        self._extent = extent
        self._parts = cut_parts(extent, COVERAGE_PARTS)
        self._covers: dict[str, list[int]] = {name: [0] * len(self._parts) for name in (*SliceState, AGAIN)}

    def add(self, name: str, start: int, stop: int) -> None:
        """Add a range `[start, stop)` that is in a state or was taken back; overlapping ranges all count."""
        cover, extent, parts = self._covers[name], self._extent, len(self._parts)
        stop = min(stop, extent)
        if start >= stop:
            return
        at, part = start, start * parts // extent
        while at < stop:
            # The part ends at the first index of the next one, as in `cut_parts`.
            end = max(at, min(stop, extent * (part + 1) // parts))
            cover[part] += end - at
            at, part = end, part + 1

    def build_lines(self) -> Iterator[Mapping[str, Any]]:
        """The fields of each part."""
        for part, (start, stop) in enumerate(self._parts):
            yield {
                "part": f"{part:02d}",
                "start": start,
                "stop": stop,
                **{str(name): cover[part] for name, cover in self._covers.items()},
            }


def build_coverage_lines(
    slices: Iterable[Slice], again: Iterable[tuple[int, int]], extent: int
) -> Iterator[Mapping[str, Any]]:
    """A line for each part of the request space up to `extent`.

    The ranges `[start, stop)` that were taken back all count, even where they overlap.
    """
    coverage = Coverage(extent)
    for piece in slices:
        coverage.add(piece.state, piece.start, piece.stop)
    for start, stop in again:
        coverage.add(AGAIN, start, stop)
    return coverage.build_lines()


def cut_parts(requests: int, parts: int) -> Sequence[tuple[int, int]]:
    """Cut the space into this many equal parts `[start, stop)`; a small space has fewer."""
    parts = min(parts, requests)
    return [(requests * part // parts, requests * (part + 1) // parts) for part in range(parts)]
