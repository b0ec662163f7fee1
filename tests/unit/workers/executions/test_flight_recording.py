import asyncio

from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url
from oku_workers.executions.execution import Execution
from oku_workers.executions.flight_recording import LONGEST_STRIDE, FlightRecording
from oku_workers.feed.feed import Feed


class Paper:
    """What an execution has written, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.written: list[int] = []
        self.recording = FlightRecording(self.written.append, lambda: self.now)

    def take_all(self, count: int, rate_rps: float) -> None:
        """Take so many positions one by one, at a rate; each must have been written before."""
        at, stop = 0, 0
        while at < count:
            if at == stop:
                stop = self.recording.extend(at, count)
            assert at < stop <= self.written[-1]
            at += 1
            self.now += 1 / rate_rps


def test_a_stride_lasts_for_hundredths_of_a_second() -> None:
    """Whatever the rate: so a death costs little, and writing costs little."""
    for rate_rps in (0.5, 5.0, 50.0, 500.0, 5_000.0, 50_000.0):
        paper = Paper()
        paper.take_all(20_000, rate_rps)
        strides = [
            after - before for before, after in zip(paper.written[20:-1], paper.written[21:-1], strict=False)
        ]
        assert max(strides) <= max(1, 0.1 * rate_rps), rate_rps
        assert max(strides) <= LONGEST_STRIDE
        assert len(paper.written) <= max(20_000 / LONGEST_STRIDE + 20, 60 * 20_000 / rate_rps + 20), rate_rps
    # A bound that comes nearer holds. What was written stays; it is more than will be taken.
    paper = Paper()
    for at in (0, 1, 3):
        paper.recording.extend(at, 100)
    assert paper.written == [2, 3, 7] or paper.written[-1] > 4
    assert paper.recording.extend(4, 5) == 5
    assert paper.recording.extend(4, 100) == paper.written[-1]


async def test_an_execution_is_never_ahead_of_what_it_has_written() -> None:
    """Over several ranges, with limits that rise, and through a feed."""
    spec = Spec(requests=100, urls=(Url("http://target.test/"),))
    lease = Lease(id="lease", run="r1", ranges=[(0, 5), (7, 8), (10, 60)], limit=20)
    finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    execution, paper = Execution(lease, spec, finished), Paper()
    execution.recording = paper.recording
    feed = Feed()
    feed.add(execution)
    taken = 0
    for limit in (20, 30, 56):
        feed.raise_limits({execution: limit})
        while feed.current is not None:
            feed.pop()
            taken += 1
            assert taken == execution.taken <= paper.written[-1] <= limit
            paper.now += 0.001
    assert taken == 56
