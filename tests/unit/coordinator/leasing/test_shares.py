"""How a run is divided among its workers."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from oku_coordinator.leasing.shares import Division, Fleet, Shares, choose_division
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.messaging.share import HeldShare, Settled, Share
from oku_core.spec.spec import Spec


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
    half = [*build_workers("v", settled=share.number), *build_workers("w")]
    assert divide(shares, half, 2.1, "bv") == []
    confirmed = build_workers("v", "w", settled=share.number)
    assert divide(shares, confirmed, 2.2, "bv") == [("bv", 0, 2), ("bw", 1, 2)]
    assert shares.find_takers(both) == both
    assert shares.find("bw") == Share(run="r", number=share.number, rank=1, of=2, is_alone=True)


def test_a_worker_that_leaves_keeps_its_share_until_it_has_no_lease() -> None:
    """It may have requests in flight as long as it has one."""
    shares = Shares("r")
    divide(shares, build_workers("v", "w"), 1.0)
    divide(shares, build_workers("v"), 2.0, "bv", "bw")
    share = shares.find("bv")
    assert share is not None
    settled = build_workers("v", settled=share.number)
    divide(shares, settled, 2.5, "bv", "bw")
    assert shares.is_awaited
    divide(shares, settled, 3.0, "bv")
    assert not shares.is_awaited


def test_a_division_that_can_never_be_confirmed_gives_way_to_another() -> None:
    """A worker that holds leases has reported after it was begun, or knows a newer one."""
    waiting = Division(5, {"a": 0})
    assert choose_division(waiting, Fleet({"a": 0, "b": 1}, ["b"], {"a": 5, "b": 0}), 9) == Division(
        9, {"a": 0, "b": 1}
    )
    assert choose_division(waiting, Fleet({"a": 0}, ["a"], {"a": 7}), 9) == Division(9, {"a": 0})
    assert choose_division(waiting, Fleet({"a": 0, "b": 1}, ["a"], {"a": 4}), 9) is waiting
    # The number is higher than any that a worker knows, whatever the clock shows.
    shares = Shares("r")
    divide(shares, build_workers("w", settled=8000), 1.0, "bw")
    share = shares.find("bw")
    assert share is not None
    assert share.number == 8001


def test_while_many_come_shares_change_no_faster_than_workers_can_be_told() -> None:
    """A change is sent to everybody: a thousand who come one by one would take a million messages."""
    shares = Shares("r")
    names = [f"w{number:04}" for number in range(1000)]
    assert len(divide(shares, build_workers(*names), 0.0)) == 1000
    assert divide(shares, build_workers(*names, "x"), 1.9) == []
    assert shares.find("bx") is None
    assert len(divide(shares, build_workers(*names, "x"), 2.1)) == 1001


@dataclass
class _Worker:
    """A worker of the game.

    Attributes:
        in_flight: the requests that the target has of it.
        leases: how many it has.
        is_excepted: whether it was declared dead while it was alive.
    """

    name: str
    incarnation: str
    held: HeldShare = field(default_factory=HeldShare)
    settled: int = 0
    in_flight: int = 0
    leases: int = 0
    is_alive: bool = True
    is_leaving: bool = False
    is_excepted: bool = False

    def find_window(self, spec: Spec) -> int:
        return min((spec.share_out(spec.concurrency, *place) for place in self.held.places), default=0)


class _Game:
    """A run with workers that come, die and leave, over a broker that loses, repeats and delays messages."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.shares = Shares("r")
        self.now = 1.0
        self.workers: list[_Worker] = []
        self.known: dict[str, WorkerState] = {}
        """The workers that the coordinator believes to be alive."""
        self.ledger: dict[str, int] = {}
        """The open leases of each process."""
        self.messages: list[tuple[_Worker, Share | Settled, int]] = []
        """On their way, each with the number of its lease, or 0; they may be delivered at any time."""
        self.dealt = 0
        self.delivered: set[int] = set()

    def play(self, event: str, first: int, second: int) -> None:
        """Have something happen, to one of the workers or messages, or to all."""
        self.now += 0.3
        if event in _OF_A_WORKER:
            if self.workers:
                _OF_A_WORKER[event](self, self.workers[first % len(self.workers)], second)
        elif event in ("deliver", "lose"):
            if self.messages:
                self.deliver(first % len(self.messages), is_kept=bool(second % 3), is_lost=event == "lose")
        else:
            _OF_ALL[event](self, first)

    def join(self, first: int) -> None:
        """A worker joins; its name may be that of an earlier process."""
        name = f"w{first % 4}"
        is_taken = any(
            worker.name == name and (worker.incarnation in self.known or worker.is_excepted)
            for worker in self.workers
        )
        if len(self.workers) < 8 and not is_taken and len(self.known) < self.spec.most_workers:
            worker = _Worker(name, f"b{len(self.workers)}")
            self.workers.append(worker)
            self.known[worker.incarnation] = WorkerState(name, worker.incarnation, 0.0)

    def restart(self, _: int = 0) -> None:
        """The coordinator is started again; workers report soon."""
        self.shares = Shares("r")
        for worker in self.known.values():
            worker.settled = ()

    def work(self, _: int = 0) -> None:
        """For a while nothing is late."""
        self.divide()
        self.deliver_all()
        for worker in self.workers:
            self.settle(worker)
            self.deal(worker)
        self.deliver_all()

    def rush(self, first: int) -> None:
        """All workers send."""
        for worker in self.workers:
            self.send(worker, first)

    def divide(self, _: int = 0) -> None:
        takers = [
            self.known[worker.incarnation]
            for worker in self.workers
            if worker.incarnation in self.known and not worker.is_leaving
        ]
        holders = [incarnation for incarnation, count in self.ledger.items() if count]
        for control in self.shares.divide(takers, holders, self.now, self.now):
            assert control.share is not None
            self.messages.append((self._find(control.incarnation), control.share, 0))

    def deliver_all(self) -> None:
        while self.messages:
            self.deliver(0, is_kept=False, is_lost=False)

    def deliver(self, place: int, *, is_kept: bool, is_lost: bool) -> None:
        worker, message, lease = self.messages[place]
        if not is_kept:
            del self.messages[place]
        if is_lost or (isinstance(message, Share) and not worker.is_alive):
            return
        if isinstance(message, Settled):
            if (known := self.known.get(worker.incarnation)) is not None:
                known.settled = [message]
            return
        worker.held = worker.held.follow(message)
        if lease and lease not in self.delivered:
            self.delivered.add(lease)
            worker.leases += 1

    def deal(self, worker: _Worker, _: int = 0) -> None:
        known = self.known.get(worker.incarnation)
        if known is None or worker.is_leaving or not self.shares.find_takers([known]):
            return
        share = self.shares.find(worker.incarnation)
        if share is not None:
            self.ledger[worker.incarnation] = self.ledger.get(worker.incarnation, 0) + 1
            self.dealt += 1
            self.messages.append((worker, share, self.dealt))

    def send(self, worker: _Worker, count: int) -> None:
        room = worker.find_window(self.spec) - worker.in_flight
        if worker.is_alive and worker.leases and not worker.is_leaving:
            worker.in_flight += max(0, min(room, count))

    def answer(self, worker: _Worker, count: int) -> None:
        worker.in_flight -= min(worker.in_flight, count)

    def settle(self, worker: _Worker, _: int = 0) -> None:
        if worker.is_alive and worker.in_flight <= worker.find_window(self.spec):
            worker.settled = worker.held.number
        if worker.is_alive and worker.settled:
            self.messages.append((worker, Settled("r", worker.settled), 0))

    def close(self, worker: _Worker, _: int = 0) -> None:
        if worker.is_alive and worker.leases and not worker.in_flight:
            self.ledger[worker.incarnation] -= worker.leases
            worker.leases = 0

    def leave(self, worker: _Worker, _: int = 0) -> None:
        worker.is_leaving = True

    def die(self, worker: _Worker, _: int = 0) -> None:
        worker.is_alive, worker.in_flight, worker.leases = False, 0, 0

    def declare(self, worker: _Worker, _: int = 0) -> None:
        """Declare a worker dead, which may be alive."""
        if self.known.pop(worker.incarnation, None) is not None:
            self.ledger.pop(worker.incarnation, None)
            worker.is_excepted = worker.is_alive
            self.messages = [each for each in self.messages if each[0] is not worker or not each[2]]

    def come_back(self, worker: _Worker, _: int = 0) -> None:
        """A worker that was declared dead reports; its leases are void, and it has ended them."""
        if worker.is_excepted and not worker.in_flight:
            worker.leases, worker.is_excepted = 0, False
            self.known[worker.incarnation] = WorkerState(worker.name, worker.incarnation, 0.0)

    def _find(self, incarnation: str) -> _Worker:
        return next(worker for worker in self.workers if worker.incarnation == incarnation)

    def count_most(self) -> int:
        """The most that can be in flight as things are."""
        return sum(
            max(worker.in_flight, 0 if worker.is_leaving else worker.find_window(self.spec))
            for worker in self.workers
            if worker.is_alive and worker.leases and not worker.is_excepted
        )


_OF_A_WORKER: dict[str, Callable[[_Game, _Worker, int], None]] = {
    "deal": _Game.deal, "send": _Game.send, "answer": _Game.answer, "settle": _Game.settle,
    "close": _Game.close, "leave": _Game.leave, "die": _Game.die, "declare": _Game.declare,
    "come back": _Game.come_back,
}  # fmt: skip
_OF_ALL: dict[str, Callable[[_Game, int], None]] = {
    "join": _Game.join, "restart": _Game.restart, "work": _Game.work, "rush": _Game.rush,
    "divide": _Game.divide,
}  # fmt: skip
_FREQUENT = ("join", "work", "work", "rush", "rush", "divide", "deliver", "settle")
_EVENTS = st.tuples(
    st.sampled_from((*_OF_A_WORKER, *_OF_ALL, "deliver", "lose", *_FREQUENT)),
    st.integers(0, 99),
    st.integers(0, 20),
)


@given(
    concurrency=st.integers(1, 20),
    connections=st.none() | st.integers(1, 6),
    events=st.lists(_EVENTS, max_size=120),
)
def test_no_more_is_in_flight_than_the_run_asks_for(
    concurrency: int, connections: int | None, events: list[tuple[str, int, int]]
) -> None:
    """Whichever message is lost, late or doubled, and whoever joins, dies, leaves or is started again."""
    game = _Game(Spec(concurrency=concurrency, connections=connections))
    for event in (("join", 0, 0), ("join", 1, 0), ("divide", 0, 0), *events):
        game.play(*event)
        assert game.count_most() <= concurrency, event
