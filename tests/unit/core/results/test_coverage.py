from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.interval import Slice, SliceState
from oku_core.results.coverage import build_coverage_lines, cut_parts


@given(st.integers(1, 10**12), st.integers(1, 60))
def test_parts_are_equal_and_cover_the_request_space(requests: int, parts: int) -> None:
    """The lengths of the parts differ by at most one request."""
    cuts = cut_parts(requests, parts)
    assert cuts[0][0] == 0
    assert cuts[-1][1] == requests
    assert all(a[1] == b[0] for a, b in pairwise(cuts))
    assert {stop - start for start, stop in cuts} <= {requests // len(cuts), requests // len(cuts) + 1}


@given(st.data(), st.integers(1, 3000))
def test_coverage_counts_every_index_once(data: Any, requests: int) -> None:
    """Each part counts exactly the indices in it, whatever the slices are."""
    edges = sorted({0, requests, *data.draw(st.lists(st.integers(0, requests), max_size=12))})
    states = [data.draw(st.sampled_from(SliceState)) for _ in edges[1:]]
    slices = [Slice(a, b, state) for a, b, state in zip(edges, edges[1:], states, strict=False)]
    again = [(edges[0], edges[1]), (edges[-2], edges[-1])]
    kinds = [next(piece.state for piece in slices if piece.stop > index) for index in range(requests)]
    for line in build_coverage_lines(slices, again, requests):
        part = kinds[line["start"] : line["stop"]]
        assert {state: line[state] for state in SliceState} == {
            state: part.count(state) for state in SliceState
        }
        expected = sum(max(0, min(b, line["stop"]) - max(a, line["start"])) for a, b in again)
        assert line["again"] == expected


def test_a_space_of_any_size_has_its_parts() -> None:
    """There are never more than fifty parts."""
    for requests in [1, 49, 50, 51]:
        lines = list(build_coverage_lines([Slice(0, requests, SliceState.PENDING)], [], requests))
        assert len(lines) == min(requests, 50)
        assert [line["part"] for line in lines] == [f"{part:02d}" for part in range(len(lines))]
    # What lies beyond the extent is left out.
    slices = [Slice(0, 90, SliceState.ACCOUNTED), Slice(90, 10**15, SliceState.UNUSED)]
    lines = list(build_coverage_lines(slices, [(80, 95)], 100))
    assert sum(line["accounted"] for line in lines) == 90
    assert sum(line["unused"] for line in lines) == 10
    assert sum(line["again"] for line in lines) == 15
    assert list(build_coverage_lines([Slice(0, 10**15, SliceState.UNUSED)], [], 0)) == []
