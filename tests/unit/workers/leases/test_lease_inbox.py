from typing import Any

from tests.kit.workers.engines_in_memory import OTHER_SPEC, SPEC, build_lease

from oku_core.messaging.hook import SetupData
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Stop
from oku_core.process.clock import SteadyClock
from oku_workers.leases.lease_inbox import LATEST_S, MOST_SPECS, REMEMBERED_S, Arrival, LeaseInbox, Objection


class Desk:
    """An inbox whose clock a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.inbox = LeaseInbox("b1", SteadyClock(lambda: self.now, lambda: self.now))

    def accept(self, *leases: Lease, **changes: Any) -> list[Arrival]:
        """Leases arrive in one message."""
        fields: dict[str, Any] = {"incarnation": "b1", "start_by": self.now + 60, "spec": SPEC}
        return self.inbox.accept(LeaseBatch(run=leases[0].run, leases=list(leases), **(fields | changes)))

    def accept_one(self, lease: Lease, **changes: Any) -> Objection | None:
        """What there is against a lease that is new."""
        [arrival] = self.accept(lease, **changes)
        return arrival.objection


def test_the_spec_comes_once_for_each_run() -> None:
    """Later messages go without it, and get the one that came; the runs that are known are listed."""
    desk = Desk()
    desk.accept(build_lease(0, 5))
    [arrival] = desk.accept(build_lease(5, 9), spec=None)
    assert arrival.spec == SPEC
    desk.accept(build_lease(0, 5, run="r2"), spec=OTHER_SPEC)
    assert desk.inbox.specs == ["r1", "r2"]
    [arrival] = desk.accept(build_lease(9, 11), spec=None)
    assert (arrival.spec, desk.inbox.specs) == (SPEC, ["r2", "r1"])
    # What a setup returned comes with the spec and an older one is not used.
    desk = Desk()
    [arrival] = desk.accept(build_lease(0, 5), setup=1, setup_data='"old"')
    assert arrival.setup == SetupData(1, '"old"')
    [arrival] = desk.accept(build_lease(5, 9), spec=None, setup=1)
    assert arrival.setup == SetupData(1, '"old"')
    assert desk.accept(build_lease(9, 11), spec=None, setup=2) == []
    [arrival] = desk.accept(build_lease(9, 11), setup=2, setup_data='"new"')
    assert arrival.setup == SetupData(2, '"new"')
    assert desk.inbox.specs == ["r1#1", "r1#2"]
    # Leases without a known spec are dropped. They come again, with it, and are new then.
    desk = Desk()
    lease = build_lease(0, 5)
    assert desk.accept(lease, spec=None) == []
    assert desk.accept_one(lease) is None
    # Few specs are remembered. They are those of the newest runs; a spec may be large.
    desk = Desk()
    runs = [f"r{number}" for number in range(MOST_SPECS + 3)]
    for run in runs:
        desk.accept(build_lease(0, 5, run=run))
    assert desk.inbox.specs == runs[3:]


def test_how_long_a_lease_is_remembered() -> None:
    """Its coordinator may have given it up by now."""
    desk = Desk()
    assert desk.accept_one(build_lease(0, 5), start_by=desk.now) is None
    assert desk.accept_one(build_lease(5, 9), start_by=desk.now - 0.1) == Objection.STALE
    # An id is remembered until no message with it can be in time.
    desk = Desk()
    lease = build_lease(0, 5)
    desk.accept(lease, start_by=1060.0)
    desk.now = 1061.0
    assert desk.accept(lease, start_by=1080.0) == []
    desk.now = 1080.0 + LATEST_S
    assert desk.accept(lease, start_by=1080.0) == []
    desk.now = 1080.1 + LATEST_S
    desk.accept(build_lease(5, 9))
    assert desk.accept_one(lease, start_by=1080.0) == Objection.STALE
    # What was sent of is known for a while after its end.
    desk = Desk()
    over, lost = "r1.1.aa", "r1.2.aa"
    for name in (over, lost):
        desk.accept(build_lease(0, 5, name=name))
    desk.now += 1000
    desk.inbox.record_end(over)
    desk.inbox.record_loss(lost)
    desk.now += LATEST_S
    desk.accept(build_lease(5, 9))
    assert [desk.inbox.refuse_unknown(name) for name in (over, lost)] == [False, False]
    assert desk.accept(build_lease(0, 5, name=lost)) == []
    desk.now += REMEMBERED_S
    desk.accept(build_lease(9, 10))
    assert [desk.inbox.refuse_unknown(name) for name in (over, lost)] == [True, True]


def test_a_lease_that_was_ended_before_it_came_is_objected_to() -> None:
    """Its coordinator was told that nothing of it is taken, and must be able to rely on that."""
    desk = Desk()
    assert desk.inbox.refuse_unknown("r1.1.aa")
    assert not desk.inbox.refuse_unknown("r1.1.aa")
    desk.now += REMEMBERED_S - 1
    assert desk.accept_one(build_lease(0, 5, name="r1.1.aa")) == Objection.ENDED
    # A known lease is not ended as an unknown one. It has a state of its own, or had one.
    desk = Desk()
    desk.accept(build_lease(0, 5, name="r1.1.aa"))
    assert not desk.inbox.refuse_unknown("r1.1.aa")
    cases: list[tuple[int, str, Objection | None]] = [
        (7, "r1", Objection.STOPPED),
        (8, "r1", None),
        (7, "r2", None),
    ]
    for number, run, objection in cases:
        # A lease that comes after its stop is objected to.
        desk = Desk()
        desk.inbox.stop(Stop(run="r1", up_to=7, grace_s=0))
        desk.inbox.stop(Stop(run="r1", up_to=3, grace_s=0))
        assert desk.accept_one(build_lease(0, 5, run=run, name=f"{run}.{number:09d}.aa")) == objection


def test_a_lease_is_accepted_once_and_by_its_own_process() -> None:
    """Its message may come again, alone or with others."""
    desk = Desk()
    first, second = build_lease(0, 5), build_lease(5, 9)
    assert desk.accept(first) == [Arrival(first, SPEC, None)]
    assert desk.accept(first) == []
    assert [arrival.lease for arrival in desk.accept(first, second)] == [second]
    # What is for another process is dropped.
    desk = Desk()
    assert desk.accept(build_lease(0, 5), incarnation="b0") == []
    assert desk.inbox.specs == []
    # Who leaves begins nothing. It is the first objection of all.
    desk = Desk()
    desk.inbox.is_leaving = True
    assert desk.accept_one(build_lease(0, 5), start_by=0.0) == Objection.LEAVING
