import asyncio

import pytest

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.process.supervision import Health
from oku_workers.leases.checkpointer import COALESCE_S, Checkpointer

BATCH = CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[])


class Bench:
    """A checkpointer that has begun; times are in seconds since then.

    Attributes:
        has_news: whether there is anything to say.
        is_open: whether anything that was sent is not confirmed.
        sent: when something was sent, and whether it was a repetition.
        error: what sending fails with.
        takes_s: how long sending takes.
    """

    def __init__(self, spread: float = 1.0) -> None:
        self.has_news = False
        self.is_open = False
        self.error: Exception | None = None
        self.takes_s = 0.0
        self.sent: list[tuple[float, bool]] = []
        self.heard: list[CheckpointBatch] = []
        self._is_repeat = False
        self._began_at = asyncio.get_running_loop().time()
        self.checkpointer = Checkpointer(self, self, spread)
        self.health = Health("checkpoints")
        self.task = asyncio.ensure_future(self.checkpointer.keep_sending(self.health))

    @property
    def now(self) -> float:
        """The time."""
        return round(asyncio.get_running_loop().time() - self._began_at, 3)

    @property
    def times(self) -> list[float]:
        """When something was sent."""
        return [at for at, _ in self.sent]

    async def wait_until(self, at: float) -> None:
        """Let time go by."""
        await asyncio.sleep(at - self.now)

    def confirm(self) -> None:
        """All that was sent is known."""
        self.is_open = False
        self.checkpointer.on_all_confirmed()

    def on_sent(self, batch: CheckpointBatch) -> None:
        """Note it."""
        self.heard.append(batch)

    def collect(self, *, is_repeat: bool) -> CheckpointBatch | None:
        """Build a message, if there is anything to say."""
        self._is_repeat = is_repeat
        return BATCH if self.has_news or (is_repeat and self.is_open) else None

    async def send(self, batch: CheckpointBatch) -> None:
        """Send it, or fail."""
        self.sent.append((self.now, self._is_repeat))
        await asyncio.sleep(self.takes_s)
        if self.error is not None:
            raise self.error
        assert batch is BATCH
        self.is_open, self.has_news = True, False


async def test_something_new_is_sent_at_the_interval() -> None:
    """Nothing is sent as long as nothing is new."""
    bench = Bench()
    await bench.wait_until(10.0)
    assert bench.times == []
    for _ in range(3):
        bench.has_news = True
        await bench.wait_until(bench.now + 3.0)
        bench.confirm()
    assert bench.times == pytest.approx([12.0, 15.0, 18.0])
    assert bench.heard == [BATCH] * 3
    # Many workers spread over the interval. Each has a place of its own in it, and keeps it.
    bench = Bench(spread=0.25)
    bench.has_news = True
    await bench.wait_until(1.0)
    bench.confirm()
    bench.has_news = True
    await bench.wait_until(4.0)
    assert bench.times == pytest.approx([0.75, 3.75])
    # A new interval holds at once.
    bench = Bench()
    await asyncio.sleep(0)
    bench.checkpointer.set_interval(10.0)
    assert bench.checkpointer.interval_s == 10.0
    bench.has_news = True
    await bench.wait_until(4.0)
    bench.confirm()
    bench.has_news = True
    await bench.wait_until(5.0)
    bench.checkpointer.set_interval(3.0)
    await bench.wait_until(9.0)
    assert bench.times == pytest.approx([3.0, 8.0])


@pytest.mark.parametrize(("interval_s", "times"), [(3.0, [3.6, 4.1]), (5.0, [3.6, 4.1]), (60.0, [])])
async def test_a_run_that_begins_is_told_of_early(interval_s: float, times: list[float]) -> None:
    """It is told of after half a second, one and two, unless very many workers would all do so."""
    bench = Bench()
    await asyncio.sleep(0)
    bench.checkpointer.set_interval(interval_s)
    await bench.wait_until(3.1)
    bench.checkpointer.begin_run()
    for until in (3.8, 4.3, 4.9):
        bench.has_news = True
        await bench.wait_until(until)
        bench.confirm()
    assert bench.times == pytest.approx(times)


async def test_what_is_wanted_goes_at_once_and_not_too_often() -> None:
    """Whoever asks in the same moment is served by one message; the next one waits for a moment."""
    bench = Bench()
    await bench.wait_until(1.0)
    for _ in range(10):
        bench.has_news = True
        bench.checkpointer.request()
        await asyncio.sleep(0.01)
        bench.confirm()
    assert bench.times == pytest.approx([1.0, 1.0 + COALESCE_S])
    # Leases that end together are one message. Who can wait for a moment does.
    bench = Bench()
    await bench.wait_until(1.0)
    bench.has_news = True
    for _ in range(4):
        bench.checkpointer.request(COALESCE_S)
        await asyncio.sleep(0.01)
    await bench.wait_until(2.0)
    assert bench.times == pytest.approx([1.0 + COALESCE_S])


async def test_what_is_not_confirmed_is_repeated_with_growing_pauses() -> None:
    """They grow from a third of the interval to all of it, and begin anew once answers are quick."""
    bench = Bench()
    bench.checkpointer.set_interval(6.0)
    bench.has_news = True
    bench.checkpointer.request()
    await bench.wait_until(15.0)
    assert bench.times == pytest.approx([0.0, 2.0, 6.0, 12.0])
    assert [is_repeat for _, is_repeat in bench.sent] == [False, True, True, True]
    bench.confirm()
    bench.sent.clear()
    await bench.wait_until(30.0)
    assert bench.sent == []
    bench.has_news = True
    bench.checkpointer.request()
    await bench.wait_until(30.1)
    bench.confirm()
    bench.has_news = True
    bench.checkpointer.request()
    await bench.wait_until(33.0)
    assert bench.times == pytest.approx([30.0, 30.1, 32.1])


async def test_answers_that_are_late_and_repetitions() -> None:
    """The broker may have been away; if the next message is lost, it is repeated after ten seconds."""
    bench = Bench()
    bench.has_news = True
    bench.checkpointer.request()
    await bench.wait_until(20.0)
    bench.confirm()
    bench.sent.clear()
    bench.has_news = True
    bench.checkpointer.request()
    await bench.wait_until(39.0)
    assert bench.times == pytest.approx([20.0, 30.0])
    # The next message waits for the answer to the one before.
    bench = Bench()
    for until in (0.1, 0.2, 0.9, 1.5):
        bench.has_news = True
        bench.checkpointer.request()
        await bench.wait_until(until)
    assert bench.sent == [(0.0, False), (1.0, True)]
    bench.has_news = True
    bench.checkpointer.request()
    bench.confirm()
    await bench.wait_until(1.6)
    assert bench.sent[2:] == [(1.5, False)]
    # A slow coordinator gets few repetitions.
    bench = Bench()
    for begin in (0.0, 100.0, 200.0, 300.0):
        await bench.wait_until(begin)
        bench.has_news = True
        bench.checkpointer.request()
        await bench.wait_until(begin + 4.5)
        bench.confirm()
        bench.has_news = False
    assert [at for at in bench.times if at > 99.0] == pytest.approx([100.0, 200.0, 300.0])


async def test_a_message_that_cannot_be_sent_is_tried_again_soon() -> None:
    """A broker may be away; whoever watches is told, until it works."""
    bench = Bench()
    bench.error = OSError("no broker")
    bench.has_news = True
    bench.checkpointer.request()
    await bench.wait_until(10.0)
    assert bench.health.trouble == "checkpoints: OSError: no broker"
    pauses = [later - earlier for earlier, later in zip(bench.times, bench.times[1:], strict=False)]
    assert pauses
    assert all(0.0 < pause <= 1.01 for pause in pauses)
    assert bench.heard == []
    bench.error = None
    await bench.wait_until(12.0)
    assert (bench.health.trouble, bench.heard) == ("", [BATCH])


async def test_one_message_follows_the_other() -> None:
    """While one is on its way none is built: what comes next is newer then."""
    bench = Bench()
    bench.takes_s = 2.0
    for at in (0.0, 0.5, 1.0):
        await bench.wait_until(at)
        bench.has_news = True
        bench.checkpointer.request()
    await bench.wait_until(2.6)
    bench.has_news = True
    await bench.wait_until(3.5)
    assert bench.times[0] == 0.0
    assert all(at >= 2.0 for at in bench.times[1:])


@pytest.mark.parametrize("is_confirmed", [True, False])
async def test_a_coordinator_that_is_heard_of_again_is_told_at_once(*, is_confirmed: bool) -> None:
    """From then on everything is as before it went away."""
    bench = Bench()
    bench.has_news = True
    bench.checkpointer.request()
    await bench.wait_until(1000.0)
    bench.sent.clear()
    bench.checkpointer.on_heard()
    await bench.wait_until(1000.1)
    assert bench.times == pytest.approx([1000.0])
    if is_confirmed:
        bench.confirm()
    bench.sent.clear()
    bench.has_news = True
    await bench.wait_until(1004.0)
    assert bench.times


async def test_a_coordinator_that_is_away() -> None:
    """Nobody empties its queue; an hour of it are some eighty messages, however much is new."""
    bench = Bench()
    while bench.now < 3600.0:
        bench.has_news = True
        bench.checkpointer.request()
        await asyncio.sleep(1.0)
    assert 60 <= len([at for at in bench.times if at > 60.0]) <= 65
    assert len(bench.sent) < 120
    # A coordinator that speaks is not away.
    bench = Bench()
    bench.has_news = True
    bench.checkpointer.request()
    for _ in range(100):
        await asyncio.sleep(2.0)
        bench.checkpointer.on_heard()
    pauses = [later - earlier for earlier, later in zip(bench.times, bench.times[1:], strict=False)]
    assert max(pauses) < 3.1
    # A coordinator that speaks and takes nothing in is told little.
    bench = Bench()
    bench.has_news = True
    bench.checkpointer.request()
    while bench.now < 3600.0:
        await asyncio.sleep(5.0)
        bench.checkpointer.on_heard()
    assert 100 < len(bench.sent) < 220
    bench.checkpointer.on_heard(begins_anew=True)
    bench.confirm()
    bench.sent.clear()
    bench.has_news = True
    bench.checkpointer.request()
    for _ in range(4):
        await asyncio.sleep(2.5)
        bench.checkpointer.on_heard()
    assert len(bench.sent) >= 3
