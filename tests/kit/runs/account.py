"""What every run must end with, whatever died on the way."""

from typing import Any


def assert_account_balances(summary: dict[str, Any]) -> None:
    """The outcomes sum to what is accounted, and the servers' own count lies where it must."""
    outcomes, accounted = summary["outcomes"], summary["accounted"]
    assert sum(outcomes.values()) == accounted
    by_coordinator = outcomes["lost"] + summary["not_sent"]["not_dealt"]
    assert sum(worker["requests"] for worker in summary["workers"]) == accounted - by_coordinator
    answered = sum(outcomes[each] for each in ("ok", "unexpected_status", "failed_check"))
    # An iteration of user code has no status.
    assert sum(summary["statuses"].values()) == (answered if summary["unit"] == "request" else 0)
    if summary["servers"] is not None:
        served = summary["servers"]["served"]
        sent = accounted - outcomes["not_sent"] - outcomes["lost"]
        assert outcomes["ok"] <= served <= sent + summary["resent_at_most"]


def assert_completed(summary: dict[str, Any]) -> None:
    """Every request of the run is accounted, once, and the account balances."""
    assert summary["state"] == "completed"
    assert summary["accounted"] == summary["requests"]
    assert_account_balances(summary)


def list_flags(summary: dict[str, Any]) -> set[str]:
    """The flags of validity."""
    return {validity["flag"] for validity in summary["validity"]}
