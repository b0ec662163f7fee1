"""The hot path of a connection: an answer comes, is recognised and counted, and the next request goes out.

`speedups/exchange.c` and `answer_batch.c` are the same, compiled; all else that a connection does is in
`connection`.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING

from oku_core.accounting.outcome import OK
from oku_core.http_client.http1_connection import NO_FILE
from oku_workers.engines.http.response_counting import CountAnswers, Parsed
from oku_workers.engines.httptools.body_size import Shape
from oku_workers.engines.httptools.request import BuildRequest
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol
from oku_workers.speedups.extension import IS_COMPILED, write

if IS_COMPILED:
    from oku_workers.speedups import _speedups

CONNECTING, IDLE, SENDING, SENT, READING, CLOSED = range(6)
"""The states of a connection; `SENT` waits for the first piece of an answer."""
MOST_CACHED = 256
LONGEST_BYTES = 1024
"""How many responses are remembered, and how long each may be: at most 0.3 MB in all."""


class ResponseCache:
    """What the parser made of whole responses that left their connection open.

    It is valid for one kind of request only: the meaning depends on the method and what is expected.
    """

    def __init__(self) -> None:
        self._parsed: dict[bytes, Parsed] = {}
        self.find = self._parsed.get
        """Gives the parsed response with these bytes, or None."""

    @property
    def count(self) -> int:
        """How many responses are remembered."""
        return len(self._parsed)

    def add(self, response: bytes, parsed: Parsed) -> None:
        """Remember a response, unless it is long; when there are too many, all others are forgotten."""
        if len(response) > LONGEST_BYTES:
            return
        if len(self._parsed) >= MOST_CACHED:
            self._parsed.clear()
        self._parsed[response] = parsed


class PythonAnswerBatch:
    """Counts each answer at once; the compiled one counts the answers of a turn of the event loop together.

    Args:
        call_soon: has something called at the end of a turn of the event loop.
        count_answers: counts answers that have the same tally and the same status.
    """

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], object], count_answers: CountAnswers
    ) -> None:
        """There is nothing to keep of them."""

    def count(self) -> None:
        """Count the waiting answers."""


AnswerBatch = PythonAnswerBatch
if not TYPE_CHECKING and IS_COMPILED:
    AnswerBatch = _speedups.AnswerBatch


class PythonRouteBase:
    """What the hot path reads of a route.

    Attributes:
        shapes: of the answers that have been read before and were ok.
        find_known: finds what a whole answer is that was the same, byte for byte; None while so many have
            differed in a row that it is not worth it.
        looks_inside: whether a check needs more of an answer than its shape and size.
        ok_ns: how long an answer may take to count as ok.
    """

    __slots__ = ("find_known", "looks_inside", "ok_ns", "shapes")

    shapes: tuple[Shape, ...]
    find_known: Callable[[bytes], Parsed | None] | None
    looks_inside: bool
    ok_ns: int

    @abstractmethod
    def recognise(self, answer: bytes) -> Parsed | None:
        """What an answer counts as that is like one before, and ok unless it is late; None if it is not."""


class PythonExchange:
    """What a connection needs for each request, and what it does with most answers.

    Attributes:
        tally: counts the request in flight; None without one.
        coordinate: the place of that request in the ledger.
        lateness_us: how long after its due time that request was sent.
        since_ns: when that request was sent (connecting included), or when the connection became idle.
    """

    __slots__ = (
        "_batch",
        "_build",
        "_feed",
        "_file",
        "_route",
        "_state",
        "_turns",
        "coordinate",
        "lateness_us",
        "since_ns",
        "tally",
    )

    tally: Tally | None
    coordinate: int
    lateness_us: int
    since_ns: int
    _batch: AnswerBatch
    """Where answers wait to be counted."""
    _build: BuildRequest | None
    """Makes the bytes of request `i`; None if the engine has to decide what follows on the one in flight."""
    _feed: FeedProtocol
    _file: int
    """The file descriptor of the socket; `NO_FILE` if the transport has to send."""
    _route: "RouteBase"
    """What the request in flight is."""
    _state: int
    _turns: "Sequence[RouteBase] | None"
    """Index `i` takes the route `turns[i % len(turns)]`; None if there is only one."""

    def data_received(self, data: bytes) -> None:  # noqa: C901  # a call for each part would take as long
        """A piece of an answer arrived, mostly the whole of it."""
        route = self._route
        if self._state != SENT or (
            # To look up a long one takes longer than to recognise it.
            ((find := route.find_known) is None or len(data) > LONGEST_BYTES or (known := find(data)) is None)
            and (known := route.recognise(data)) is None
        ):
            self._read(data)
            return
        now_ns = monotonic_ns()
        _, status, received, _ = known
        following, build = self._feed.current, self._build
        if following is None or build is None or not (request := build(following.next_coordinate)):
            self._end(status, received, now_ns)
            return
        # As `Owner.go_on`, `Feed.pop`, `start_request` and `send`, whose calls would take 7 % of a request.
        tally, latency_ns = self.tally, now_ns - self.since_ns
        is_late = latency_ns > route.ok_ns
        if is_late:
            self._count_late(status, received, latency_ns)
        self.coordinate = index = following.next_coordinate
        following_tally = following.tally
        if (turns := self._turns) is not None:
            if (targets := following.turns) is not None:
                following_tally = following_tally.by_target[targets[index % len(targets)]]
            self._route = turns[index % len(turns)]
        self.tally = following_tally
        self.since_ns = now_ns
        following.next_coordinate = index + 1
        if following.next_coordinate == following.stop:
            self._feed.advance()
        try:
            sent = 0 if self._file == NO_FILE else write(self._file, request)
        except OSError:  # the transport will meet it, too, and report it
            sent = 0
        if sent < len(request):
            self._write_rest(request, sent)
        if is_late:
            return
        assert tally is not None
        try:  # as `count_answer`
            tally.answer(OK, status, latency_ns // 1000, received)
        except Exception as error:
            tally.execution.abandon(error)
            raise

    @abstractmethod
    def _read(self, data: bytes) -> None:
        """Read a piece of an answer that is not known."""

    @abstractmethod
    def _end(self, status: int, received: int, now_ns: int) -> None:
        """Count an answer that is ok unless it is late, and have the engine decide what follows.

        Args:
            status: its status.
            received: the bytes of its body.
            now_ns: when it came.
        """

    @abstractmethod
    def _count_late(self, status: int, received: int, latency_ns: int) -> None:
        """Count an answer that is late, in the middle of taking the next request; as `_end`."""

    @abstractmethod
    def _write_rest(self, request: bytes, sent: int) -> None:
        """Have the transport send what the socket has not taken, or all of it."""


Exchange = PythonExchange
RouteBase = PythonRouteBase
if not TYPE_CHECKING and IS_COMPILED:
    Exchange = _speedups.Exchange
    RouteBase = _speedups.RouteBase
