import pytest
from tests.kit.coordinators.iterations import build_inner
from tests.kit.coordinators.parts import build_closed_part
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.telemetry.target_ticks import MOST_NAMES, TargetTicks
from oku_core.accounting.outcome import build_no_counts
from oku_core.results.tick import TargetTick
from oku_core.spec.target import Target

TARGETS = (Target(name="item", url="/item"), Target(name="buy", url="/buy"))


@pytest.fixture
def ticks() -> TargetTicks:
    """No tick was made yet."""
    return TargetTicks()


@pytest.fixture
def accounts() -> RunAccount:
    """Of two phases, one of them the warm-up; nothing was bought."""
    accounts = RunAccount()
    accounts.parts.open(("warm-up", "item")).add(build_closed_part([50_000]))
    accounts.parts.open(("main", "item")).add(build_closed_part([1000, 2000, 3000], 1))
    return accounts


def test_a_target_has_the_counts_of_all_phases_and_the_quantiles_of_those_measured(
    ticks: TargetTicks, accounts: RunAccount
) -> None:
    """One of which nothing is accounted is there, too."""
    assert ticks.build("r1", TARGETS, accounts) == [
        TargetTick(name="item", outcomes=make_counts(4, timeout=1), p50_ms=2.0, p99_ms=3.0),
        TargetTick(name="buy", outcomes=build_no_counts()),
    ]


def test_new_latencies_change_the_quantiles(ticks: TargetTicks, accounts: RunAccount) -> None:
    """So they do in a phase that has just begun."""
    ticks.build("r1", TARGETS, accounts)
    accounts.parts.open(("main", "item")).add(build_closed_part([1000] * 10))
    accounts.parts.open(("after", "item")).add(build_closed_part([4000]))
    item, _ = ticks.build("r1", TARGETS, accounts)
    assert (sum(item.outcomes), item.p50_ms, item.p99_ms) == (16, 1.0, 4.0)


def test_the_quantiles_of_another_run_are_its_own(ticks: TargetTicks, accounts: RunAccount) -> None:
    """As many latencies are not the same latencies."""
    ticks.build("r1", TARGETS, accounts)
    other = RunAccount()
    other.parts.open(("main", "item")).add(build_closed_part([8000] * 3))
    item, _ = ticks.build("r2", TARGETS, other)
    assert (item.p50_ms, item.p99_ms) == (8.0, 8.0)


def test_inner_requests_have_the_same_by_name(ticks: TargetTicks, accounts: RunAccount) -> None:
    """They are sorted; those of the warm-up count, but are not measured."""
    for part, latencies_us in (
        (("main", "orders"), [2000]),
        (("warm-up", "login"), [9000]),
        (("main", "login"), [1000]),
    ):
        accounts.inner.open(part).add(build_inner(part[1], latencies_us))
    assert ticks.build_inner("r1", accounts) == [
        TargetTick(name="login", outcomes=make_counts(2), p50_ms=1.0, p99_ms=1.0),
        TargetTick(name="orders", outcomes=make_counts(1), p50_ms=2.0, p99_ms=2.0),
    ]


def test_of_very_many_names_those_with_the_most_requests_are_told(ticks: TargetTicks) -> None:
    """A tick comes each second, to everybody who follows the run."""
    accounts = RunAccount()
    for number in range(MOST_NAMES + 20):
        account = accounts.inner.open(("", f"item {number:03}"))
        account.add(build_inner("", [1000] * (1 + number % 60)))
    told = ticks.build_inner("r1", accounts)
    assert len(told) == MOST_NAMES
    assert [each.name for each in told] == sorted(each.name for each in told)
    assert min(sum(each.outcomes) for each in told) == 11
