"""How a run is divided among its workers."""

from oku_coordinator.leasing.shares import Shares
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.share import Settled, Share


def build_workers(*names: str, settled: int = 0) -> list[WorkerState]:
    """Workers of these names, which have settled on a division."""
    confirmed = [Settled("r", settled)] if settled else []
    return [WorkerState(name, f"b{name}", 0.0, settled=confirmed) for name in names]


def divide(
    shares: Shares, workers: list[WorkerState], now: float, *holders: str
) -> list[tuple[str, int, int]]:
    """The worker, rank and number of workers in each message that is sent now."""
    controls = shares.divide(workers, holders, now, now)
    return [(each.incarnation, each.share.rank, each.share.of) for each in controls if each.share is not None]


def test_a_share_is_sent_when_it_changes_and_every_few_seconds() -> None:
    """A message may be lost."""
    shares = Shares("r")
    first = [("bv", 0, 2), ("bw", 1, 2)]
    assert divide(shares, build_workers("w", "v"), 1.0) == first
    assert divide(shares, build_workers("v", "w"), 2.0) == []
    assert divide(shares, build_workers("v", "w"), 4.0) == first
    assert divide(shares, build_workers("w"), 4.5) == [("bw", 0, 1)]
    assert shares.find("bv") is None


def test_a_run_that_begins_is_divided_at_once() -> None:
    """Nothing is in flight without an open lease."""
    shares = Shares("r")
    assert divide(shares, [], 1.0) == []
    divide(shares, build_workers("w"), 2.0)
    assert (shares.find("bw"), shares.is_awaited) == (
        Share(run="r", number=2000, rank=0, of=1, is_alone=True),
        False,
    )
    # A coordinator that was restarted finds open leases, and waits for their holders.
    shares = Shares("r")
    divide(shares, build_workers("w"), 3.0, "bw")
    assert shares.find("bw") == Share(run="r", number=3000, rank=0, of=1, is_alone=False)
    assert shares.is_awaited
    divide(shares, build_workers("w", settled=3000), 3.5, "bw")
    assert shares.find("bw") == Share(run="r", number=3000, rank=0, of=1, is_alone=True)


def test_a_new_worker_gets_leases_once_all_have_confirmed_their_shares() -> None:
    """Until then the new division counts beside the old one."""
    shares = Shares("r")
    old, both = build_workers("v"), build_workers("v", "w")
    divide(shares, old, 1.0)
    assert divide(shares, both, 2.0, "bv") == [("bv", 0, 2), ("bw", 1, 2)]
    assert shares.find_takers(both) == [both[0]]
    share = shares.find("bv")
    assert share is not None
    assert not share.is_alone
    confirmed = build_workers("v", "w", settled=share.number)
    assert divide(shares, confirmed, 2.2, "bv") == [("bv", 0, 2), ("bw", 1, 2)]
    assert shares.find_takers(both) == both
    assert shares.find("bw") == Share(run="r", number=share.number, rank=1, of=2, is_alone=True)


def test_while_many_come_shares_change_no_faster_than_workers_can_be_told() -> None:
    """A change is sent to everybody: a thousand who come one by one would take a million messages."""
    shares = Shares("r")
    names = [f"w{number:04}" for number in range(1000)]
    assert len(divide(shares, build_workers(*names), 0.0)) == 1000
    assert divide(shares, build_workers(*names, "x"), 1.9) == []
    assert shares.find("bx") is None
    assert len(divide(shares, build_workers(*names, "x"), 2.1)) == 1001
