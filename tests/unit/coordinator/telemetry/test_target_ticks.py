import pytest
from tests.kit.coordinators.parts import build_closed_part
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.telemetry.target_ticks import TargetTicks
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
    accounts.open(("warm-up", "item")).add(build_closed_part([50_000]))
    accounts.open(("main", "item")).add(build_closed_part([1000, 2000, 3000], 1))
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
    accounts.open(("main", "item")).add(build_closed_part([1000] * 10))
    accounts.open(("after", "item")).add(build_closed_part([4000]))
    item, _ = ticks.build("r1", TARGETS, accounts)
    assert (sum(item.outcomes), item.p50_ms, item.p99_ms) == (16, 1.0, 4.0)


def test_the_quantiles_of_another_run_are_its_own(ticks: TargetTicks, accounts: RunAccount) -> None:
    """As many latencies are not the same latencies."""
    ticks.build("r1", TARGETS, accounts)
    other = RunAccount()
    other.open(("main", "item")).add(build_closed_part([8000] * 3))
    item, _ = ticks.build("r2", TARGETS, other)
    assert (item.p50_ms, item.p99_ms) == (8.0, 8.0)
