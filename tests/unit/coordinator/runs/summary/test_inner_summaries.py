from tests.kit.coordinators.iterations import build_failed_inner, build_inner, build_iterations

from oku_coordinator.ledger.storage.run_account import PartAccounts, RunAccount
from oku_coordinator.runs.summary.part_summaries import MOST_INNER_FAILURES, build_inner_requests
from oku_core.accounting.account import Account
from oku_core.accounting.outcome import Outcome, ReasonCount
from oku_core.messaging.checkpoint import Part


def fold(*parts: tuple[str, Part]) -> RunAccount:
    """The account of ten iterations in which these inner requests were made, each with its phase."""
    accounts = RunAccount()
    accounts.parts.open(("", "")).add(build_iterations(10))
    for phase, part in parts:
        accounts.inner.open((phase, part.name)).add(part)
    return accounts


def test_each_name_has_a_summary() -> None:
    """They are sorted; a run that makes none has none."""
    accounts = fold(("", build_inner("orders", [3001, 4000])), ("", build_inner("login", [1000] * 20)))
    login, orders = build_inner_requests(accounts, 10.0)
    assert (login.name, login.requests, login.outcomes.ok, login.rate_rps) == ("login", 20, 20, 2.0)
    assert (login.latency_ms.p50, login.latency_ms.max, login.failures) == (1.0, 1.0, [])
    assert (orders.name, orders.statuses, orders.bytes_received) == ("orders", {"200": 1}, 20)
    assert build_inner_requests(fold(), 10.0) == []


def test_the_reasons_of_a_name_are_the_most_frequent_first() -> None:
    """With the first and the last iteration of each, if they are known."""
    accounts = fold(
        ("", build_failed_inner("login", 2, "slow")), ("", build_failed_inner("login", 5, "down"))
    )
    (login,) = build_inner_requests(accounts, 10.0)
    assert [(each.outcome, each.reason, each.requests, each.first_index) for each in login.failures] == [
        (Outcome.TIMEOUT, "down", 5, 0),
        (Outcome.TIMEOUT, "slow", 2, 0),
    ]
    account = Account()
    for number in range(MOST_INNER_FAILURES + 3):
        account.reasons[2, str(number)] = ReasonCount(2, str(number), 1, -1, -1)
    (many,) = build_inner_requests(RunAccount(inner=PartAccounts({("", "x"): account})), 10.0)
    assert len(many.failures) == MOST_INNER_FAILURES
    assert (many.failures[0].first_index, many.failures[0].last_index) == (None, None)
