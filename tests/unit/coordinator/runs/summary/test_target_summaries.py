from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.parts import build_closed_part

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.runs.summary.part_summaries import summarize_phases, summarize_targets
from oku_core.accounting.outcome import build_outcome_counts
from oku_core.messaging.checkpoint import Part
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec

NAMES = ("item", "buy", "pay")


def build_spec(**keys: object) -> Spec:
    """A spec with three targets."""
    targets = [{"name": name, "url": f"/{name}", "weight": 8 - place} for place, name in enumerate(NAMES)]
    return parse_spec(
        Source(None, {"requests": 100, "base-url": "http://shop.test", "targets": targets} | keys)
    )


def fold(parts: Mapping[tuple[str, str], Part]) -> RunAccount:
    """The account of parts by phase and name."""
    account = RunAccount()
    for name, part in parts.items():
        account.parts.open(name).add(part)
    return account


def test_a_run_whose_targets_have_no_names_has_no_summaries_of_targets() -> None:
    """They would say what the summary of the run says."""
    spec = parse_spec(Source(None, {"url": "http://shop.test/", "requests": 10}))
    accounts = fold({("", ""): build_closed_part([1000])})
    assert summarize_targets(spec, accounts, 1.0) == []


def test_targets_come_in_the_order_of_the_spec() -> None:
    """One without a request yet is there, with zeros and without latencies."""
    accounts = fold({("", "buy"): build_closed_part([3001], 1), ("", "item"): build_closed_part([2000])})
    item, buy, pay = summarize_targets(build_spec(), accounts, 2.0)
    assert [(target.name, target.weight) for target in (item, buy, pay)] == [
        ("item", 8),
        ("buy", 7),
        ("pay", 6),
    ]
    assert (item.requests, item.outcomes.ok, item.rate_rps, item.latency_ms.p50) == (1, 1, 0.5, 2.0)
    assert (buy.requests, buy.outcomes.unexpected_status, buy.outcomes.timeout) == (2, 1, 1)
    assert (buy.statuses, buy.rate_rps, buy.latency_ms.max) == ({"404": 1}, 1.0, 3.001)
    assert (pay.requests, pay.statuses, pay.rate_rps, pay.latency_ms.p50) == (0, {}, 0.0, None)


def test_the_warm_up_of_a_target_counts_but_is_not_measured() -> None:
    """It is among the counts of the target, as among those of the run; all later phases are measured."""
    accounts = fold({
        ("warm-up", "item"): build_closed_part([9000] * 4),
        ("main", "item"): build_closed_part([1000, 2000]),
        ("warm-up", "buy"): build_closed_part([5000]),
    })  # fmt: skip
    item, buy, _ = summarize_targets(build_spec(**{"warm-up": "2s"}), accounts, 2.0)
    assert (item.requests, item.rate_rps, item.latency_ms.max) == (6, 1.0, 2.0)
    assert (buy.requests, buy.rate_rps, buy.latency_ms.max) == (1, 0.0, None)


PARTS = st.builds(build_closed_part, st.lists(st.integers(0, 10_000), max_size=20), st.integers(0, 5))


@given(st.dictionaries(st.tuples(st.sampled_from(["warm-up", "main"]), st.sampled_from(NAMES)), PARTS))
def test_the_targets_sum_to_the_run(parts: dict[tuple[str, str], Part]) -> None:
    """So do the targets of each phase to the phase: by outcome, by status and in bytes."""
    spec, accounts = build_spec(**{"warm-up": "2s"}), fold(parts)
    phases = [phase.targets for phase in summarize_phases(spec, accounts, 3.0)]
    total = accounts.parts.fetch_whole()
    for targets in (summarize_targets(spec, accounts, 1.0), [target for phase in phases for target in phase]):
        assert sum(target.requests for target in targets) == total.accounted
        assert sum(target.bytes_received for target in targets) == total.bytes_received
        for outcome, count in build_outcome_counts(total.outcomes).items():
            assert sum(getattr(target.outcomes, outcome) for target in targets) == count
        for status, count in total.statuses.items():
            assert sum(target.statuses.get(status, 0) for target in targets) == count
        for target in targets:
            assert sum(msgspec.structs.astuple(target.outcomes)) == target.requests
