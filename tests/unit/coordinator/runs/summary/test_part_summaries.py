from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.iterations import build_failed_inner, build_inner, build_iterations
from tests.kit.coordinators.parts import build_closed_part, build_open_part

from oku_coordinator.ledger.storage.run_account import PartAccounts, RunAccount
from oku_coordinator.runs.summary.part_summaries import (
    MOST_INNER_FAILURES,
    build_inner_requests,
    measure_planned_rps,
    summarize_failures,
    summarize_phases,
    summarize_targets,
)
from oku_core.accounting.account import Account
from oku_core.accounting.outcome import OUTCOMES, Outcome, ReasonCount, build_outcome_counts
from oku_core.messaging.checkpoint import Part
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url


def build_spec(**keys: object) -> Spec:
    """A spec that says this."""
    return parse_spec(Source(None, keys))


def fold(parts: Mapping[tuple[str, str], Part]) -> RunAccount:
    """The account of parts by phase and name."""
    account = RunAccount()
    for name, part in parts.items():
        account.parts.open(name).add(part)
    return account


def test_a_run_with_one_phase_without_a_name_has_no_summaries_of_phases() -> None:
    """They would say what the summary of the run says."""
    assert summarize_phases(build_spec(requests=10), fold({("", ""): build_closed_part([5])}), 1.0) == []


def test_the_phases_of_a_schedule_come_in_its_order() -> None:
    """Each has the requests that are due in it and the time of the schedule; all of its names count."""
    spec = build_spec(stages=[{"name": "ramp", "for": "4s", "rate": "0..10/s"}, "8s:10/s"])
    accounts = fold({
        ("stage-2", ""): build_open_part([4000], 1, [2, 1, 0]),
        ("ramp", "cart"): build_open_part([1000, 1001]),
        ("ramp", ""): build_open_part([3000]),
    })  # fmt: skip
    ramp, soak = summarize_phases(spec, accounts, 5.0)
    assert (ramp.name, ramp.begin_s, ramp.end_s, ramp.due) == ("ramp", 0.0, 4.0, 20)
    assert (soak.name, soak.begin_s, soak.end_s, soak.due) == ("stage-2", 4.0, 12.0, 80)
    assert (ramp.requests, ramp.completed, soak.requests, soak.completed) == (3, 3, 5, 1)
    assert (ramp.outcomes.ok, ramp.outcomes.unexpected_status, ramp.statuses) == (2, 1, {"200": 2, "404": 1})
    assert (soak.outcomes.ok, soak.outcomes.timeout, soak.outcomes.not_sent) == (1, 1, 3)
    assert (soak.not_sent.in_flight_cap, soak.not_sent.late, soak.not_sent.not_dealt) == (2, 1, 0)
    assert (ramp.latency_ms.min, ramp.latency_ms.max) == (1.0, 3.0)
    assert (ramp.response_time_ms.min, ramp.lateness_ms.max) == (11.0, 10.0)
    assert (ramp.sent_rps, ramp.completed_rps, soak.sent_rps, soak.completed_rps) == (0.8, 0.8, 2.0, 1.0)
    assert (ramp.planned_rps, soak.planned_rps) == (5.0, 10.0)


def test_a_closed_run_has_as_many_requests_in_a_phase_as_were_taken_in_it() -> None:
    """The last one ends with the last request if nothing else ends it."""
    spec = build_spec(**{"url": "http://shop.test/", "requests": 100, "warm-up": "2s"})
    accounts = fold({("warm-up", ""): build_closed_part([1000] * 6)})
    warm_up, main = summarize_phases(spec, accounts, 3.0)
    assert (warm_up.name, warm_up.begin_s, warm_up.end_s, warm_up.requests) == ("warm-up", 0.0, 2.0, 6)
    assert (main.name, main.begin_s, main.end_s, main.requests) == ("main", 2.0, None, 0)
    assert (warm_up.sent_rps, warm_up.completed_rps, main.sent_rps) == (3.0, 3.0, 0.0)
    assert (warm_up.due, warm_up.completed) == (None, 6)
    assert main.latency_ms.p50 is None
    assert main.planned_rps is None


def test_a_phase_tells_of_each_target() -> None:
    """Its targets are in the order of the spec, with zeros where nothing has come of one yet."""
    spec = build_spec(**{
        "requests": 100, "warm-up": "2s", "base-url": "http://shop.test",
        "targets": [{"name": "item", "url": "/item"}, {"name": "buy", "url": "/buy"}],
    })  # fmt: skip
    accounts = fold({
        ("main", "item"): build_closed_part([1000, 2000]), ("warm-up", "item"): build_closed_part([9000])
    })  # fmt: skip
    warm_up, main = summarize_phases(spec, accounts, 4.0)
    assert [(target.name, target.requests) for target in warm_up.targets] == [("item", 1), ("buy", 0)]
    assert [(target.name, target.requests) for target in main.targets] == [("item", 2), ("buy", 0)]
    item, buy = main.targets
    assert (item.latency_ms.max, item.rate_rps, main.sent_rps) == (2.0, 1.0, 1.0)
    assert (buy.latency_ms.max, buy.rate_rps) == (None, 0.0)


def test_the_planned_rate_is_the_mean_of_the_time_so_far() -> None:
    """Halfway up a ramp it is a quarter of its end; behind the schedule nothing is planned."""
    ramp = build_spec(stages=["4s:0..100/s"])
    assert [measure_planned_rps(ramp, 0.0, end_s) for end_s in (0.0, 2.0, 4.0, 9.0)] == [
        0.0,
        25.0,
        50.0,
        50.0,
    ]
    assert measure_planned_rps(ramp, 2.0, 4.0) == 75.0
    assert measure_planned_rps(ramp, 5.0, 6.0) == 0.0
    assert measure_planned_rps(build_spec(requests=10), 0.0, 1.0) is None


NAMES = ("item", "buy", "pay")


def build_spec_of_targets(**keys: object) -> Spec:
    """A spec with three targets."""
    targets = [{"name": name, "url": f"/{name}", "weight": 8 - place} for place, name in enumerate(NAMES)]
    return parse_spec(
        Source(None, {"requests": 100, "base-url": "http://shop.test", "targets": targets} | keys)
    )


def test_a_run_whose_targets_have_no_names_has_no_summaries_of_targets() -> None:
    """They would say what the summary of the run says."""
    spec = parse_spec(Source(None, {"url": "http://shop.test/", "requests": 10}))
    accounts = fold({("", ""): build_closed_part([1000])})
    assert summarize_targets(spec, accounts, 1.0) == []


def test_targets_come_in_the_order_of_the_spec() -> None:
    """One without a request yet is there, with zeros and without latencies."""
    accounts = fold({("", "buy"): build_closed_part([3001], 1), ("", "item"): build_closed_part([2000])})
    item, buy, pay = summarize_targets(build_spec_of_targets(), accounts, 2.0)
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
    item, buy, _ = summarize_targets(build_spec_of_targets(**{"warm-up": "2s"}), accounts, 2.0)
    assert (item.requests, item.rate_rps, item.latency_ms.max) == (6, 1.0, 2.0)
    assert (buy.requests, buy.rate_rps, buy.latency_ms.max) == (1, 0.0, None)


PARTS = st.builds(build_closed_part, st.lists(st.integers(0, 10_000), max_size=20), st.integers(0, 5))


@given(st.dictionaries(st.tuples(st.sampled_from(["warm-up", "main"]), st.sampled_from(NAMES)), PARTS))
def test_the_targets_sum_to_the_run(parts: dict[tuple[str, str], Part]) -> None:
    """So do the targets of each phase to the phase: by outcome, by status and in bytes."""
    spec, accounts = build_spec_of_targets(**{"warm-up": "2s"}), fold(parts)
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


def fold_inner(*parts: tuple[str, Part]) -> RunAccount:
    """The account of ten iterations in which these inner requests were made, each with its phase."""
    accounts = RunAccount()
    accounts.parts.open(("", "")).add(build_iterations(10))
    for phase, part in parts:
        accounts.inner.open((phase, part.name)).add(part)
    return accounts


def test_each_name_has_a_summary() -> None:
    """They are sorted; a run that makes none has none."""
    accounts = fold_inner(("", build_inner("orders", [3001, 4000])), ("", build_inner("login", [1000] * 20)))
    login, orders = build_inner_requests(accounts, 10.0)
    assert (login.name, login.requests, login.outcomes.ok, login.rate_rps) == ("login", 20, 20, 2.0)
    assert (login.latency_ms.p50, login.latency_ms.max, login.failures) == (1.0, 1.0, [])
    assert (orders.name, orders.statuses, orders.bytes_received) == ("orders", {"200": 1}, 20)
    assert build_inner_requests(fold_inner(), 10.0) == []


def test_the_reasons_of_a_name_are_the_most_frequent_first() -> None:
    """With the first and the last iteration of each, if they are known."""
    accounts = fold_inner(
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


def test_the_sample_of_a_reason_has_no_value_of_a_query() -> None:
    """It may be a token, and summaries go into reports and to Loki."""
    spec = Spec(urls=(Url("http://me:pw@h/items/{i}?token=abc&id={i}"),))
    count = ReasonCount(OUTCOMES.index(Outcome.CONNECT_ERROR), "refused", 2, 4, 9)
    (failure,) = summarize_failures(spec, [("", count)])
    assert failure.sample == "GET http://***@h/items/4?token=***&id=4"


def test_an_exception_has_a_traceback_and_no_request() -> None:
    """What user code asked for is not known; a reason without a traceback has none."""
    spec = Spec(engine=Engine.PYTHON)
    counts = [
        ("", ReasonCount(OUTCOMES.index(Outcome.EXCEPTION), reason, requests, 4, 9))
        for reason, requests in (("ValueError: 7", 3), ("KeyError: 'x'", 2))
    ]
    first, second = summarize_failures(spec, counts, tracebacks={"ValueError: 7": "File x.py, line 3"})
    assert (first.outcome, first.reason, first.traceback) == (
        Outcome.EXCEPTION, "ValueError: 7", "File x.py, line 3",
    )  # fmt: skip
    assert (first.sample, first.first_index, second.traceback) == ("", 4, "")
