from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.iterations import USER_CODE, build_inner, build_iterations
from tests.kit.coordinators.leases import MakeBatch, apply_batches, deal_lease
from tests.kit.coordinators.parts import build_closed_part, build_open_part
from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run, start_run
from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_core.accounting.index_ranges import IndexRanges
from oku_core.messaging.checkpoint import Part
from oku_core.spec.parser import Source, parse_spec

OPEN = parse_spec(Source(None, {"stages": [{"name": "ramp", "for": "4s", "rate": "0..10/s"}, "8s:10/s"]}))
CLOSED = parse_spec(Source(None, {"requests": 10, "warm-up": "2s"}))


def build_lease(start: int, stop: int) -> LeaseRecord:
    """A lease of a range."""
    return LeaseRecord(
        id="l1", run="r1", ranges=IndexRanges([(start, stop)]), worker="w1", incarnation="b1", cut_at=0.0,
        limit=stop - start, end=stop - start, reported_end=stop - start,
    )  # fmt: skip


def name(part: Part, phase: str, **changes: Any) -> Part:
    """A part in a phase, changed as wanted."""
    return msgspec.structs.replace(part, phase=phase, **changes)


def test_a_plan_names_the_phases_of_a_run() -> None:
    """A run without stages and warm-up has one phase without a name."""
    assert build_phase_plan(OPEN).names == ("ramp", "stage-2")
    assert build_phase_plan(CLOSED).names == ("warm-up", "main")
    assert build_phase_plan(parse_spec(Source(None, {"requests": 10}))).names == ("",)


def test_a_part_has_the_name_of_a_target() -> None:
    """One that the spec does not have cannot be true; a spec without targets has one without a name."""
    targets = [{"name": "home", "url": "/"}, {"name": "cart", "url": "/cart"}]
    several = build_phase_plan(parse_spec(Source(None, {"requests": 10, "targets": targets})))
    one = build_phase_plan(parse_spec(Source(None, {"requests": 10})))
    parts = {label: name(build_closed_part([5]), "", name=label) for label in ("", "home", "cart", "other")}
    faults = {label: several.find_fault(build_lease(0, 5), part) for label, part in parts.items()}
    assert faults == {
        "": "the run has no target ''",
        "home": None,
        "cart": None,
        "other": "the run has no target 'other'",
    }
    assert one.find_fault(build_lease(0, 5), parts[""]) is None
    assert one.find_fault(build_lease(0, 5), parts["home"]) == "the run has no target 'home'"


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (name(build_open_part([5, 7], 1, [1, 1, 0]), "ramp"), None),
        (name(build_open_part([5]), "other"), "the run has no phase 'other'"),
        (name(build_open_part([5]), "stage-2"), "the requests are due in phase 'ramp', not in 'stage-2'"),
        (name(build_closed_part([5]), "ramp"), "0 have a response time, but 1 must have one"),
        (name(build_closed_part([], 1), "ramp"), "0 have a lateness, but 1 must have one"),
    ],
)
def test_a_part_of_an_open_run_has_due_times_in_the_phase_of_its_lease(part: Part, fault: str | None) -> None:
    """Its requests are due in one phase; each that was sent has a lateness."""
    assert build_phase_plan(OPEN).find_fault(build_lease(5, 15), part) == fault


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (name(build_closed_part([5, 7], 1), "main"), None),
        (name(build_closed_part([5, 7], 1), "warm-up"), None),
        (name(build_closed_part([5, 7], 1), ""), "the run has no phase ''"),
        (
            name(build_open_part([5]), "main"),
            "it has requests with due times, but the run is closed",
        ),
        (
            name(build_open_part([], 0, [1, 0, 0]), "main"),
            "it has requests with due times, but the run is closed",
        ),
    ],
)
def test_a_part_of_a_closed_run_has_no_due_times(part: Part, fault: str | None) -> None:
    """A lease may have parts of several phases."""
    assert build_phase_plan(CLOSED).find_fault(build_lease(5, 10), part) == fault


def test_a_checkpoint_with_a_phase_that_the_run_does_not_have_is_untrue(
    ledger: Ledger, make_batch: MakeBatch
) -> None:
    """Nothing of it counts."""
    change(ledger, create_run, "r1", CLOSED, 0.0)
    change(ledger, start_run, "r1", 1.0)
    lease = deal_lease(ledger, "r1", 4, 2.0)
    first, second = (make_batch(lease).checkpoints[0].parts[0] for _ in range(2))
    wrong = [name(first, "cool-down")]
    assert apply_batches(ledger, [make_batch(lease, parts=wrong)], 4.0) == ["untrue"]
    assert check_ledger(ledger, "r1").accounted == 0
    assert apply_batches(ledger, [make_batch(lease, parts=[name(second, "warm-up")])], 4.0) == ["closed"]
    assert list(read(ledger, fetch_snapshot, "r1").accounts.parts) == [("warm-up", "")]


def test_a_part_of_iterations_has_no_statuses_and_one_of_requests_has_one_for_each_answer() -> None:
    """Only a run of user code has inner requests, in phases that it has and of any name."""
    iterations, requests = (
        build_phase_plan(USER_CODE),
        build_phase_plan(parse_spec(Source(None, {"requests": 10}))),
    )
    lease, inner = build_lease(0, 5), build_inner("any name", [1001])
    assert iterations.find_fault(lease, build_iterations(3, exception=1)) is None
    assert (
        iterations.find_fault(lease, build_closed_part([4]))
        == "the statuses do not sum to the 0 that have one"
    )
    assert requests.find_fault(lease, build_iterations(3)) == "the statuses do not sum to the 3 that have one"
    assert iterations.find_inner_fault(inner) is None
    assert iterations.find_inner_fault(name(inner, "soak")) == "the run has no phase 'soak'"
    assert requests.find_inner_fault(inner) == "the run has no inner requests"
