from hypothesis import given
from hypothesis import strategies as st
from tests.kit.outcomes import make_counts

from oku_core.accounting.outcome import build_no_counts
from oku_workers.executions.open_part import SecondCounts


def add_up(*sent: dict[int, list[int]]) -> list[int]:
    """The sum over all seconds, of which the last message about each counts."""
    known: dict[int, list[int]] = {}
    for message in sent:
        known |= message
    return [sum(counts) for counts in zip(build_no_counts(), *known.values(), strict=True)]


def test_what_has_ended_belongs_to_its_second() -> None:
    """A look as the second ends assigns what has ended in it."""
    seconds = SecondCounts()
    seconds.count(build_no_counts(), 10.2, 1)
    seconds.count(make_counts(5), 11.0, 1)
    seconds.count(make_counts(7, unexpected_status=1), 12.0, 1)
    assert seconds.list_unconfirmed() == {10: make_counts(5), 11: make_counts(2, unexpected_status=1)}
    # A second is over when the next has begun. Nothing is assigned more often than it must be.
    seconds = SecondCounts()
    seconds.count(build_no_counts(), 10.2, 1)
    assert not seconds.is_over(10.99)
    assert seconds.is_over(11.0)
    # What is confirmed is not told again.
    seconds = SecondCounts()
    seconds.count(make_counts(1), 10.2, 1)
    seconds.count(make_counts(3), 11.4, 1)
    seconds.confirm(1)
    assert seconds.list_unconfirmed() == {}
    seconds.count(make_counts(4), 11.6, 2)
    assert seconds.list_unconfirmed() == {11: make_counts(1)}
    seconds.count(make_counts(6), 11.8, 3)
    seconds.confirm(2)
    assert seconds.list_unconfirmed() == {11: make_counts(3)}
    # A clock that goes back moves nothing into the past.
    seconds = SecondCounts()
    seconds.count(make_counts(1), 50.0, 1)
    seconds.count(make_counts(2), 40.0, 1)
    seconds.count(make_counts(3), 41.0, 1)
    assert seconds.list_unconfirmed() == {50: make_counts(3)}


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 5), st.floats(0.0, 2.5), st.booleans(), st.integers(0, 3)), max_size=60
    )
)
def test_what_was_told_sums_to_the_outcomes(steps: list[tuple[int, float, bool, int]]) -> None:
    """At each checkpoint it does, whichever of the ones before were confirmed, and however late."""
    seconds, outcomes, now = SecondCounts(), build_no_counts(), 100.0
    sent: list[dict[int, list[int]]] = []
    for new, passed_s, is_checkpoint, confirmed_late in steps:
        outcomes[new % 6] += new
        now += passed_s
        if is_checkpoint:
            seconds.count(outcomes, now, len(sent) + 1)
            sent.append(seconds.list_unconfirmed())
            assert add_up(*sent) == outcomes
        elif seconds.is_over(now):
            seconds.count(outcomes, now, len(sent) + 1)
        if confirmed_late <= len(sent):
            seconds.confirm(len(sent) - confirmed_late)
