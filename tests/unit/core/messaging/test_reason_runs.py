from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.index_ranges import merge_ranges
from oku_core.messaging.reason_runs import find_runs, is_run_list, iter_runs, split_ranges

PLACES = st.dictionaries(st.integers(0, 60), st.integers(0, 3))


@given(PLACES)
def test_each_position_keeps_its_reason(places: dict[int, int]) -> None:
    """Whatever the gaps and the changes are, the runs and the ranges of each reason are the same fact."""
    ranges = list(merge_ranges((at, at + 1) for at in sorted(places)))
    by_place = {
        place: list(merge_ranges((at, at + 1) for at in sorted(places) if places[at] == place))
        for place in sorted(set(places.values()))
    }
    runs = find_runs(ranges, {place: found for place, found in by_place.items() if place})
    assert is_run_list(runs)
    assert sum(count for _, count in iter_runs(runs)) == len(places)
    split = split_ranges(ranges, runs)
    found = {
        at: place for place, spans in split.items() for start, stop in spans for at in range(start, stop)
    }
    assert found == places


def test_runs_are_short_and_have_one_form() -> None:
    """One reason takes two numbers, reasons that alternate one each, and nothing else is a list of runs."""
    assert find_runs([(0, 10_000)], {1: [(0, 10_000)]}) == [1, -9_999]
    assert find_runs([(3, 5), (6, 8)], {1: [(3, 4)], 2: [(4, 5), (6, 7)]}) == [1, 2, -1, 0]
    assert split_ranges([(5, 9)], [1]) == {1: [(5, 6)], 0: [(6, 9)]}
    for wrong in ([-1], [1, -1, -1], [1, 1], [0, 0, 2], [2, -5, 2]):
        assert not is_run_list(wrong), wrong
