"""The hot path that is compiled does what that in Python does, and counts what that counts."""

import gc
import socket
import sys
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.workers.extension import require_extension, set_exchange_clock

from oku_core.accounting.outcome import OK, TIMEOUT
from oku_core.http_client.http1_connection import NO_FILE
from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.url import Url
from oku_workers.engines.http.response_counting import Parsed, count_answers
from oku_workers.engines.httptools import exchange
from oku_workers.engines.httptools.body_size import FIXED, LENGTH, PythonShape, build_compiled_shape
from oku_workers.engines.httptools.exchange import (
    IDLE,
    LONGEST_BYTES,
    MOST_CACHED,
    SENT,
    PythonAnswerBatch,
    PythonExchange,
    PythonRouteBase,
    ResponseCache,
)
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed

OK_NS = 1000
SHAPE = ((FIXED, b"HTTP/1.1 201 Made\r\n"), (LENGTH, b"Content-Length:"))
ANSWERS: Sequence[bytes] = [
    b"HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nhi",
    b"HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nhi and more",
    b"known",
    b"seen inside",
    b"a piece",
]
"""Of the shape, nearly of it, known by its bytes, recognised by a look inside, and nothing of these."""
KNOWN: dict[bytes, Parsed] = {b"known": (OK, 200, 70, "")}


@dataclass(frozen=True)
class Kind:
    """The hot path in Python, or compiled."""

    exchange: Any
    route: Any
    batch: Any
    shape: Any


class BrokenError(Exception):
    """What a template raises that cannot be filled in."""


@dataclass(frozen=True)
class Scene:
    """What a connection meets.

    Attributes:
        targets: how many there are.
        leases: how many requests each lease has.
        answers: what comes, as places in `ANSWERS`, and how long after what came before, in ns.
        empty: every so many requests cannot be sent.
        broken: this index cannot be written down.
        has_file: whether there is a socket to write to.
        looks_inside: whether a shape says too little.
        finds_known: whether answers are looked up.
        left_at: before this answer the engine wants to decide what follows.
    """

    targets: int = 1
    leases: Sequence[int] = ()
    answers: Sequence[tuple[int, int]] = ()
    empty: int = 1000
    broken: int = -1
    has_file: bool = True
    looks_inside: bool = False
    finds_known: bool = False
    left_at: int = -1


scenes = st.builds(
    Scene,
    targets=st.integers(1, 3),
    leases=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    answers=st.lists(st.tuples(st.sampled_from([0, 0, 0, *range(len(ANSWERS))]), st.integers(1, 1100))),
    empty=st.sampled_from([2, 7, 1000]),
    broken=st.sampled_from([-1, -1, 5]),
    has_file=st.booleans(),
    looks_inside=st.booleans(),
    finds_known=st.booleans(),
    left_at=st.integers(0, 40),
)


@pytest.fixture(scope="module")
def kinds() -> tuple[Kind, Kind]:
    """In Python, and compiled."""
    require_extension()
    return (
        Kind(PythonExchange, PythonRouteBase, PythonAnswerBatch, PythonShape),
        Kind(exchange.Exchange, exchange.RouteBase, exchange.AnswerBatch, build_compiled_shape),
    )


class Recognition:
    """What a route recognises that is asked in Python; mixed into both kinds."""

    def recognise(self: Any, answer: bytes) -> Parsed | None:
        """As `Route.recognise`."""
        if self.looks_inside:
            return (OK, 202, 5, "") if answer == b"seen inside" else None
        size = self.shapes[0].measure(answer)
        return None if size < 0 else (OK, self.shapes[0].status, size, "")


class Record:
    """Notes what an exchange is told, and goes on as an engine would; mixed into both kinds."""

    def prepare(self: Any, feed: Feed, routes: list[Any], batch: Any, file: int) -> None:
        """Have what a connection has."""
        self.told = list[object]()
        self._feed, self._batch, self._file = feed, batch, file
        self._route, self._turns = routes[0], routes if len(routes) > 1 else None

    def receive(self: Any, answer: bytes, build: Callable[[int], bytes] | None) -> None:
        """An answer comes; afterwards its state is noted."""
        self._build = build
        self.data_received(answer)
        self.told.append((self._state, self.coordinate, self.since_ns, self._route.number))
        if (tally := self.tally) is not None:
            self.told.append((tally.execution.lease.id, tally.name))

    def _read(self: Any, data: bytes) -> None:
        self.told.append(("read", data))

    def _end(self: Any, status: int, received: int, now_ns: int) -> None:
        self.told.append(("end", status, received, now_ns, self.coordinate, self.since_ns))
        self.tally.answer(OK, status, (now_ns - self.since_ns) // 1000, received)
        self.begin(now_ns)

    def _count_late(self: Any, status: int, received: int, latency_ns: int) -> None:
        self.told.append(("late", status, received, latency_ns, self.coordinate))
        self.tally.answer(TIMEOUT, status, latency_ns // 1000, received)

    def _write_rest(self: Any, request: bytes, sent: int) -> None:
        self.told.append(("rest", request, sent, self.tally.execution.lease.id))

    def begin(self: Any, now_ns: int) -> None:
        """Have the next request in flight, if there is one."""
        self.tally, self._state = None, IDLE
        if (execution := self._feed.current) is not None:
            index = execution.next_coordinate
            self.tally, self.coordinate, _, _ = self._feed.pop()
            self._route = self._turns[index % len(self._turns)] if self._turns else self._route
            self._state, self.since_ns = SENT, now_ns


def build_route(kind: Kind, scene: Scene, number: int) -> Any:
    """A route that knows some answers."""
    route: Any = type("Route", (Recognition, kind.route), {})()
    route.shapes = (kind.shape(SHAPE, 201),)
    route.find_known = KNOWN.get if scene.finds_known else None
    route.looks_inside = scene.looks_inside
    route.ok_ns = OK_NS
    route.number = number
    return route


class Leases:
    """Those that a feed gives requests of.

    Args:
        targets: how many targets there are, which take turns.
        sizes: how many requests each lease has.
    """

    def __init__(self, targets: int, sizes: Sequence[int]) -> None:
        spec = Spec(urls=(Url("http://h/"),))
        if targets > 1:
            spec = Spec(targets=tuple(Target(name=f"{n}", url="http://h/") for n in range(targets)))
        self.feed = Feed()
        self.executions: list[Execution] = []
        begin = 0
        for size in sizes:
            finished: Any = Future()
            lease = Lease(id=str(begin), run="r", ranges=[(begin, begin + size)], limit=10**9)
            self.executions.append(Execution(lease, spec, finished))
            self.feed.add(self.executions[-1])
            begin += size

    def tell(self) -> list[object]:
        """All that was counted."""
        return [
            (
                (execution.taken, execution.ended, execution.finished.done()),
                (tally.name, tally.outcomes, tally.statuses, tally.bytes_received),
                tally.latency.build_snapshot(),
            )
            for execution in self.executions
            for tally in execution.tallies
        ]


class Site:
    """An exchange with a socket, and the other end of that.

    Args:
        kind: which one it is.
        leases: what it takes requests of.
        routes: of the targets.
        has_file: whether there is a file to write to.
    """

    def __init__(self, kind: Kind, leases: Leases, routes: list[Any], *, has_file: bool = True) -> None:
        self.exchange: Any = type("Exchange", (Record, kind.exchange), {})()
        self.one, self.other = socket.socketpair()
        self.one.settimeout(0)
        self.scheduled: list[Callable[[], None]] = []
        batch = kind.batch(self.scheduled.append, count_answers)
        self.exchange.prepare(leases.feed, routes, batch, self.one.fileno() if has_file else NO_FILE)

    def end_turn(self) -> None:
        """What was to be called at the end of a turn of the event loop is called."""
        for call in self.scheduled:
            call()
        self.scheduled.clear()

    def close(self) -> bytes:
        """What was sent."""
        self.one.close()
        sent = b""
        while piece := self.other.recv(1 << 20):
            sent += piece
        self.other.close()
        return sent


def play(kind: Kind, scene: Scene, patch: pytest.MonkeyPatch) -> list[object]:
    """All that can be seen of it."""
    now_ns = 1
    set_exchange_clock(patch, lambda: now_ns)

    def build(index: int) -> bytes:
        if index == scene.broken:
            raise BrokenError
        return b"" if index % scene.empty == scene.empty - 1 else b"request %d\n" % index

    leases = Leases(scene.targets, scene.leases)
    routes = [build_route(kind, scene, number) for number in range(scene.targets)]
    site = Site(kind, leases, routes, has_file=scene.has_file)
    subject = site.exchange
    subject.begin(now_ns)
    for number, (place, after_ns) in enumerate(scene.answers):
        now_ns += after_ns
        try:
            subject.receive(bytes(bytearray(ANSWERS[place])), None if number == scene.left_at else build)
        except BrokenError:
            subject.told.append("broken")
            break
    site.end_turn()
    return [*subject.told, site.close(), *leases.tell()]


@settings(max_examples=4 * settings().max_examples, deadline=None)
@given(scenes)
def test_both_do_the_same(kinds: tuple[Kind, Kind], scene: Scene) -> None:
    """Whatever comes: what is called and sent, and what is counted at the end of the turn."""
    with pytest.MonkeyPatch.context() as patch:
        in_python, compiled = (play(kind, scene, patch) for kind in kinds)
    assert compiled == in_python


def test_answers_of_one_turn_are_counted_together(kinds: tuple[Kind, Kind]) -> None:
    """However many, of however many targets and statuses; the event loop is asked for it once."""
    turns, targets, answers = 3, 10, 1000
    told = []
    for kind in kinds:
        scene = Scene(finds_known=True)
        leases = Leases(targets, [turns * answers])
        routes = [build_route(kind, scene, number) for number in range(targets)]
        site = Site(kind, leases, routes, has_file=False)
        site.exchange.begin(0)
        with pytest.MonkeyPatch.context() as patch:
            set_exchange_clock(patch, lambda: 900)
            for _ in range(turns):
                for number in range(answers):
                    site.exchange.receive(ANSWERS[0 if number % 3 else 2], lambda _: b".")
                assert len(site.scheduled) <= 1
                site.end_turn()
        site.close()
        told.append(leases.tell())
    assert told[0] == told[1]


@pytest.mark.parametrize("requests", [b"x" * (1 << 22), b"x" * 10_000])
def test_what_a_socket_does_not_take_is_left_to_the_transport(
    kinds: tuple[Kind, Kind], requests: bytes
) -> None:
    """A part of a request, or all of it."""
    for kind in kinds:
        site = Site(kind, Leases(1, [1000]), [build_route(kind, Scene(), 0)])
        subject = site.exchange
        subject.begin(0)
        for _ in range(999):
            subject.receive(ANSWERS[0], lambda _: requests)
            if rests := [each for each in subject.told if each[0] == "rest"]:
                break
        sent = site.close()
        assert [rest[1] for rest in rests] == [requests]
        assert len(sent) % len(requests) == rests[0][2]


@pytest.mark.heavy
@pytest.mark.parametrize("targets", [1, 3])
def test_it_keeps_no_reference_of_its_own(kinds: tuple[Kind, Kind], targets: int) -> None:
    """However many answers have come, whatever they count as and whatever follows; and it goes itself."""

    def build(index: int) -> bytes:
        return b"" if index % 50 == 0 else b"request %d" % index

    for kind in kinds:
        scene = Scene(finds_known=True)
        leases = Leases(targets, [10_000])
        routes = [build_route(kind, scene, number) for number in range(targets)]
        site = Site(kind, leases, routes, has_file=False)
        subject, [execution] = site.exchange, leases.executions
        subject.begin(0)
        told = [leases.feed, execution, *execution.tallies, *routes, build, KNOWN[b"known"], None, subject]
        told += [execution.turns, execution.tally.by_target]
        seen: list[list[int]] = []
        gc.collect()
        gc.disable()  # what others have left would be counted as gone
        with pytest.MonkeyPatch.context() as patch:
            set_exchange_clock(patch, count(step=OK_NS // 2).__next__)
            for _ in range(5):
                for number in range(1200):
                    subject.since_ns -= OK_NS if number % 7 == 0 else 0
                    subject.receive(ANSWERS[number % len(ANSWERS)], build)
                    if number % 10 == 0:
                        site.end_turn()
                site.end_turn()
                subject.told.clear()
                seen.append([sys.getallocatedblocks(), *map(sys.getrefcount, told)])
        gc.enable()
        site.close()
        grown = [last - first for first, last in zip(seen[1], seen[-1], strict=True)]
        assert min(execution.outcomes[OK], execution.outcomes[TIMEOUT]) > 200
        assert max(map(abs, grown)) < 50, grown


@pytest.mark.heavy
@pytest.mark.parametrize("field", ["tally", "_build", "_feed", "_turns", "_route", "_batch"])
def test_an_exchange_that_leads_to_itself_can_be_collected(kinds: tuple[Kind, Kind], field: str) -> None:
    """Its type does not outlive it either."""
    for kind in kinds:
        before = sys.getrefcount(kind.exchange)
        for _ in range(20):
            subject: Any = type("Exchange", (kind.exchange,), {})()
            setattr(subject, field, [subject])
        ghost = weakref.ref(subject)
        del subject
        gc.collect()
        assert ghost() is None
        assert sys.getrefcount(kind.exchange) < before + 20


@pytest.mark.heavy
@pytest.mark.parametrize("field", ["shapes", "find_known"])
def test_a_route_that_leads_to_itself_can_be_collected(kinds: tuple[Kind, Kind], field: str) -> None:
    """As the patterns of a route may."""
    for kind in kinds:
        route: Any = type("Route", (kind.route,), {})()
        setattr(route, field, (route,))
        ghost = weakref.ref(route)
        del route
        gc.collect()
        assert ghost() is None


def test_what_waits_to_be_counted_can_be_collected(kinds: tuple[Kind, Kind]) -> None:
    """With the event loop that should have counted it."""
    for kind in kinds:
        leases = Leases(1, [10])
        site = Site(kind, leases, [build_route(kind, Scene(), 0)], has_file=False)
        site.exchange.begin(0)
        site.exchange.receive(ANSWERS[0], lambda _: b".")
        ghosts = [weakref.ref(each) for each in (site.exchange, leases.feed)]
        site.close()
        del site, leases
        gc.collect()
        assert [ghost() for ghost in ghosts] == [None, None]


@pytest.mark.parametrize("field", ["tally", "_build", "_feed", "_turns", "_route", "_batch"])
def test_an_exchange_without_something_is_refused(kinds: tuple[Kind, Kind], field: str) -> None:
    """It is a fault of our own, and must not end the process."""
    _, kind = kinds
    site = Site(kind, Leases(1, [10]), [build_route(kind, Scene(), 0)], has_file=False)
    site.exchange.begin(0)
    delattr(site.exchange, field)
    with pytest.raises((TypeError, AttributeError)):
        site.exchange.data_received(ANSWERS[0])
    site.close()


CACHEABLE = st.tuples(st.integers(0, 2 * MOST_CACHED), st.sampled_from([1, LONGEST_BYTES, LONGEST_BYTES + 1]))


@given(st.lists(CACHEABLE, max_size=3 * MOST_CACHED))
def test_what_is_known_was_told_before(told: list[tuple[int, int]]) -> None:
    """This holds whatever was forgotten meanwhile, and there is never too much of it."""
    known = ResponseCache()
    for number, length in told:
        response = b"%d " % number + b"x" * (length - len(b"%d " % number))
        parsed = (0, 200, number, "")
        known.add(response, parsed)
        assert known.find(response) == (parsed if len(response) <= LONGEST_BYTES else None)
    assert known.count <= MOST_CACHED


def test_it_is_quick_again_after_it_was_full() -> None:
    """A target with more answers than fit is no reason to give up on those that come often."""
    known = ResponseCache()
    for number in range(MOST_CACHED + 1):
        known.add(b"%d" % number, (0, 200, number, ""))
    assert known.find(b"%d" % MOST_CACHED) == (0, 200, MOST_CACHED, "")
    assert known.find(b"0") is None
    known.add(b"0", (1, 404, 0, "status 404"))
    assert known.find(b"0") == (1, 404, 0, "status 404")
