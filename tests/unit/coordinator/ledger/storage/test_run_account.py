from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.parts import build_closed_part, build_open_part
from tests.kit.outcomes import make_counts, make_reasons

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_core.accounting.account import Account, sum_accounts
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import count_answered
from oku_core.messaging.checkpoint import Part
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.quantity import Rate

CLOSED, OPEN = Spec(), Spec(rate=Rate("5/s"))
NAMES = [("warm-up", ""), ("main", ""), ("main", "cart")]
LATENCIES = st.lists(st.integers(0, 3_590_000_000), max_size=5)
CAUSES = st.lists(st.integers(0, 9), min_size=3, max_size=3)
PARTS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.builds(build_open_part, LATENCIES, st.integers(0, 5), CAUSES)),
    max_size=5,
)


def fold(parts: list[tuple[tuple[str, str], Part]]) -> RunAccount:
    """The account of several parts, each with its phase and name."""
    account = RunAccount()
    for name, part in parts:
        account.parts.open(name).add(part)
    return account


def fold_one(part: Part) -> RunAccount:
    """The account of a run without phases, of which this came."""
    return fold([(("", ""), part)])


@given(PARTS)
def test_an_account_is_the_sum_of_its_parts_in_any_order(parts: list[tuple[tuple[str, str], Part]]) -> None:
    """Outcomes, causes, statuses, bytes and histograms add up."""
    account = fold(parts)
    total = account.parts.fetch_whole()
    assert total.build_counts() == fold(parts[::-1]).parts.fetch_whole().build_counts()
    assert total.outcomes == account.outcomes
    assert total.accounted == sum(sum(part.outcomes) for _, part in parts)
    assert total.bytes_received == sum(part.bytes_received for _, part in parts)
    for time in Time:
        assert total.histogram(time).total == sum(part.histogram(time).total for _, part in parts)


@given(PARTS, PARTS, st.sampled_from(["frozen", "not frozen"]))
def test_totals_grow_with_the_parts(
    before: list[tuple[tuple[str, str], Part]], after: list[tuple[tuple[str, str], Part]], form: str
) -> None:
    """Whenever somebody first asks for them, and whatever is frozen, they are the sums of the parts."""
    grown = fold(before)
    grown.parts.fetch_measured()
    if form == "frozen":
        grown.freeze()
    for part_name, part in after:
        grown.parts.open(part_name).add(part)
    anew = fold([*before, *after])
    for each in (grown, grown.freeze(), grown.freeze_totals()):
        for phase in ("warm-up", "main"):
            assert (
                each.parts.fetch_phase(phase).build_counts() == anew.parts.fetch_phase(phase).build_counts()
            )
        for name in (None, "", "cart"):
            assert each.parts.fetch_whole(name).build_counts() == anew.parts.fetch_whole(name).build_counts()
            measured = sum_accounts(
                account
                for (phase, each_name), account in anew.parts.items()
                if phase != "warm-up" and name in (None, each_name)
            )
            assert each.parts.fetch_measured(name).build_counts() == measured.build_counts()
    assert (grown.outcomes, grown.not_sent, grown.seen) == (anew.outcomes, anew.not_sent, anew.seen)


def test_what_has_not_grown_is_frozen_once() -> None:
    """So its figures need not be made again; a histogram is copied only when something is added to it."""
    account = fold([(name, build_open_part([1, 2], 1)) for name in NAMES])
    first = account.freeze()
    account.parts.open(NAMES[0]).add(build_open_part([5], 0))
    second = account.freeze()
    assert [second.parts[name] is first.parts[name] for name in NAMES] == [False, True, True]
    assert second.parts.fetch_phase("main") is first.parts.fetch_phase("main")
    assert second.parts[NAMES[0]].accounted == first.parts[NAMES[0]].accounted + 1


@given(PARTS)
def test_a_copy_does_not_change(parts: list[tuple[tuple[str, str], Part]]) -> None:
    """It stays the same whatever is added to the original."""
    account = fold(parts)
    copy, before = account.freeze(), fold(parts)
    account.parts.open(NAMES[0]).add(build_open_part([1, 2], 1))
    account.parts.open(("new", "")).add(build_open_part([1], 1))
    assert copy.parts.keys() == before.parts.keys()
    assert copy.parts.fetch_whole().build_counts() == before.parts.fetch_whole().build_counts()


def test_an_account_must_sum_to_what_is_accounted() -> None:
    """Its check says by how much it does not."""
    account = fold_one(build_closed_part([1, 2], 1))
    account.check(Lengths(pending=5, leased=5, accounted=3), account.outcomes, CLOSED)
    with pytest.raises(ConservationError, match="outcomes sum to 3, but 4 are accounted"):
        account.check(Lengths(pending=5, leased=5, accounted=4), account.outcomes, CLOSED)


def test_an_account_must_be_what_its_seconds_sum_to() -> None:
    """Each outcome counts by itself."""
    account = fold_one(build_closed_part([1, 2], 1))
    with pytest.raises(ConservationError, match=r"outcomes are \[1, 1, 1, .*the seconds sum to \[2, 0, 1"):
        account.check(Lengths(pending=5, leased=5, accounted=3), make_counts(2, timeout=1), CLOSED)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda account: account.times[Time.LATENCY].record(1), "3 have a latency, but 2 must have one"),
        (lambda account: account.statuses.pop("404"), "2 must have a status, but 1 have one"),
        (lambda account: account.not_sent.__setitem__(0, 3), "2 were not sent, but the causes sum to 4"),
        (
            lambda account: account.times[Time.RESPONSE_TIME].record(1),
            "3 have a response time, but 2 must have one",
        ),
        (
            lambda account: account.times[Time.LATENESS].record(1),
            "4 have a lateness, but 3 must have one",
        ),
    ],
)
def test_distributions_statuses_and_causes_must_be_those_of_the_outcomes(
    spoil: Callable[[Account], object], said: str
) -> None:
    """Requests without a complete response have no latency and no status, and those not sent no lateness."""
    account = fold([(("main", "cart"), build_open_part([1, 2], 1, [1, 1, 0]))])
    lengths = Lengths(pending=0, leased=0, accounted=5)
    account.check(lengths, account.outcomes, OPEN)
    spoil(account.parts["main", "cart"])
    with pytest.raises(ConservationError, match=f"^phase main name cart: {said}"):
        account.check(lengths, account.outcomes, OPEN)


def test_the_requests_of_closed_runs_are_never_due() -> None:
    """They have neither response times nor latenesses."""
    account = fold_one(build_open_part([1, 2]))
    lengths = Lengths(pending=0, leased=0, accounted=2)
    with pytest.raises(ConservationError, match=r"^2 have a response time, but 0 must have one"):
        account.check(lengths, account.outcomes, CLOSED)


def test_workers_have_seen_all_but_what_was_lost_or_not_dealt() -> None:
    """These two the coordinator has accounted for by itself."""
    account = fold_one(build_open_part([1, 2], 1, [3, 2, 4]))
    account.parts.open(("", "")).add(Part(outcomes=make_counts(lost=7)))
    assert account.seen == 2 + 1 + 3 + 2


def build_iterations(outcomes: list[int]) -> Part:
    """What came of iterations of user code, of which those that ran to their end took a millisecond."""
    latency = Histogram()
    for _ in range(count_answered(outcomes)):
        latency.record(1000)
    return Part(
        outcomes=outcomes, reasons=make_reasons(outcomes), times={Time.LATENCY: latency.build_latency()}
    )


def test_iterations_have_latencies_but_no_statuses() -> None:
    """Those that raised an exception or took too long have no latency, either."""
    part = build_iterations(make_counts(3, failed_check=1, exception=2, timeout=1))
    account, lengths = fold_one(part), Lengths(pending=0, leased=0, accounted=7)
    account.check(lengths, account.outcomes, Spec(engine=Engine.PYTHON))
    with pytest.raises(ConservationError, match=r"^4 must have a status, but 0 have one"):
        account.check(lengths, account.outcomes, CLOSED)
    account.parts["", ""].statuses["200"] = 4
    with pytest.raises(ConservationError, match=r"^0 must have a status, but 4 have one"):
        account.check(lengths, account.outcomes, Spec(engine=Engine.PYTHON))


def test_inner_requests_stand_beside_the_account() -> None:
    """However many they are, they count in no sum of the run, and a copy has its own."""
    account, lengths = fold_one(build_closed_part([2, 4])), Lengths(pending=0, leased=0, accounted=2)
    account.inner.open(("", "login")).add(build_closed_part([1, 3, 5]))
    copy = account.freeze()
    account.inner["", "login"].add(build_closed_part([1]))
    account.check(lengths, account.outcomes, CLOSED)
    assert (account.accounted, account.seen, account.parts.fetch_whole().accounted) == (2, 2, 2)
    assert (account.inner["", "login"].accounted, copy.inner["", "login"].accounted) == (4, 3)
