from collections.abc import Callable

import msgspec

from oku_coordinator.dossier import Dossier, build_dossier
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.record import LeaseRecord, LeaseState
from oku_coordinator.summaries import build_summary
from oku_core.history import Event, EventType, Moment
from oku_core.interval import Slice, SliceState
from oku_core.lease import Report
from oku_core.run import RunState


def build(ledger: Ledger) -> Dossier:
    """The dossier of run r1 at 9 s."""
    return build_dossier(ledger, build_summary(ledger.fetch_snapshot("r1"), 9.0), 9.0)


def test_a_dossier_is_all_that_is_kept_of_a_run(
    ledger: Ledger, cut: Callable[..., LeaseRecord], make_report: Callable[..., Report]
) -> None:
    """Summary, spec, seconds, events, leases, slices."""
    moment = Moment(
        at=5.0, seconds=1.0, state=RunState.RUNNING, accounted=10, leased=0, pending=90, done=10,
        resent_at_most=0, in_flight=1.0, workers=1,
    )  # fmt: skip
    event = Event(at=4.0, type=EventType.WORKER_JOINED, text="worker w1 is here", worker="w1")
    ledger.apply([make_report(cut(10))], 4.0)
    ledger.keep_moment("r1", moment, events=[event])
    dossier = build(ledger)
    assert (dossier.at, dossier.summary.accounted, dossier.spec["requests"]) == (9.0, 10, 100)
    assert dossier.moments == [moment]
    assert event in dossier.events
    assert [(lease.start, lease.stop, lease.state) for lease in dossier.leases] == [
        (0, 10, LeaseState.REPORTED)
    ]
    assert dossier.slices == [Slice(0, 10, SliceState.ACCOUNTED), Slice(10, 100, SliceState.PENDING)]


def test_a_dossier_travels_as_json(ledger: Ledger, cut: Callable[..., LeaseRecord]) -> None:
    """It is the same on the other side."""
    cut(10)
    dossier = build(ledger)
    assert msgspec.json.decode(msgspec.json.encode(dossier), type=Dossier) == dossier
