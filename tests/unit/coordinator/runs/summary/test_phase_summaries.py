from collections.abc import Mapping

from tests.kit.coordinators.parts import build_closed_part, build_open_part

from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.runs.summary.part_summaries import measure_planned_rps, summarize_phases
from oku_core.messaging.checkpoint import Part
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec


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
