import pytest
from tests.kit.coordinators.parts import build_closed_part

from oku_coordinator.runs.summary.part_summaries import build_request_figures, measure_sent_rps
from oku_core.accounting.account import Account
from oku_core.messaging.checkpoint import Part


def build_account(part: Part) -> Account:
    """An account of one part."""
    account = Account()
    account.add(part)
    return account


def test_the_figures_are_those_of_the_account() -> None:
    """Counts, statuses in their order, bytes and the distributions."""
    figures = build_request_figures(build_account(build_closed_part([4000, 2000, 3001], 1)))
    assert (figures["outcomes"].ok, figures["outcomes"].timeout) == (2, 1)
    assert list(figures["statuses"].items()) == [("200", 2), ("404", 1)]
    assert figures["bytes_received"] == 2
    assert (figures["latency_ms"].max, figures["response_time_ms"].max) == (4.0, None)


def test_distributions_may_be_of_a_part_of_the_account() -> None:
    """What is counted includes the warm-up, what is measured does not."""
    measured = build_account(build_closed_part([2000]))
    figures = build_request_figures(build_account(build_closed_part([2000, 8000])), measured)
    assert (figures["outcomes"].ok, figures["latency_ms"].max) == (2, 2.0)


@pytest.mark.parametrize(("seconds", "rate"), [(4.0, 1.5), (0.0, 0.0), (-2.0, 0.0)])
def test_a_rate_counts_what_was_sent_and_has_ended(seconds: float, rate: float) -> None:
    """What was not sent or is lost does not count, and before a phase begins there is none."""
    assert measure_sent_rps([3, 1, 1, 0, 0, 1, 50, 7], seconds) == rate
