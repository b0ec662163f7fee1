from hypothesis import given
from hypothesis import strategies as st

from oku_core.spec.turn_counts import TurnCount, TurnCounts

TURNS = st.lists(st.integers(0, 3), min_size=1, max_size=12)
RANKS = st.integers(0, 60)


@given(turns=TURNS, begin=st.integers(0, 30), step=st.integers(1, 30), ranks=st.tuples(RANKS, RANKS))
def test_it_counts_as_one_would_by_hand(
    turns: list[int], begin: int, step: int, ranks: tuple[int, int]
) -> None:
    """Whatever the turns and the distance of the indices have in common."""
    indices = range(begin, begin + 60 * step, step)
    start, stop = sorted(ranks)
    asked = [turns[index % len(turns)] for index in indices]
    by_hand = []
    for target in set(asked[start:stop]):
        mine = [rank for rank in range(start, stop) if asked[rank] == target]
        by_hand.append(TurnCount(target, len(mine), mine[0], mine[-1]))
    assert sorted(TurnCounts(turns, indices).count(start, stop)) == sorted(by_hand)


def test_it_counts_among_billions() -> None:
    """It looks at one period of the turns alone."""
    counts = TurnCounts([0, 0, 1], range(5, 5 + 3 * 10**12, 1)).count(1, 3 * 10**12 - 1)
    assert sorted(counts) == [
        TurnCount(0, 2 * 10**12 - 1, 1, 3 * 10**12 - 2),
        TurnCount(1, 10**12 - 1, 3, 3 * 10**12 - 3),
    ]
