"""The pusher against a real Loki with blocks so small that it hardly ever drops a doubled line itself."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.kit.loki.loki import Loki
from tests.kit.loki.loki_proxy import LokiProxy, shuffle_faults
from tests.kit.loki.loki_queries import LokiQueries

from oku_coordinator.loki.batch import Entry
from oku_coordinator.loki.endpoint import LokiTarget
from oku_coordinator.loki.pusher import Limits, LokiPusher

HOUR_NS = 3600 * 10**9
SMALL_BLOCKS = {"ingester": {"chunk_block_size": 1024}}
SELECTOR = '{app="test"}'

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def loki(tmp_path: Path) -> Iterator[Loki]:
    """One that runs."""
    with Loki(tmp_path / "loki", settings=SMALL_BLOCKS) as loki:
        yield loki


class Source:
    """Makes entries, no two of them alike, and knows what was made."""

    def __init__(self, *, at_ns: int | None = None) -> None:
        self.made: list[Entry] = []
        self._at_ns = time.time_ns() if at_ns is None else at_ns

    def make(self, count: int, size: int = 20, **labels: str) -> list[Entry]:
        """Entries of one stream, a microsecond apart."""
        pairs = (("app", "test"), *labels.items())
        entries = []
        for _ in range(count):
            at_ns = self._at_ns + 1000 * len(self.made)
            entries.append(Entry(pairs, at_ns, f"{len(self.made)} ".ljust(size, "x")))
            self.made.append(entries[-1])
        return entries

    def lines(self, **labels: str) -> list[tuple[int, str]]:
        """Times and lines of those that have these labels, in the order in which they were made."""
        wanted = set(labels.items())
        return [(entry.at_ns, entry.line) for entry in self.made if wanted <= set(entry.labels)]


def assert_once(loki: Loki, expected: Sequence[tuple[int, str]], selector: str = SELECTOR) -> None:
    """Loki has these lines, by a query of lines, and each once, which only their number shows."""
    assert Counter(loki.fetch_lines(selector)) == Counter(expected)
    assert loki.count_lines(selector) == len(expected)


async def test_all_lines_arrive_once_and_in_order(loki: Loki) -> None:
    """Lines of several streams arrive at the same time, and a query sees them at once."""
    source = Source()
    async with LokiPusher(LokiTarget(url=loki.url)) as pusher:
        for _ in range(3):
            entries = [entry for kind in "abc" for entry in source.make(700, kind=kind)]
            assert await pusher.push(entries) == []
            assert_once(loki, source.lines())
    for kind in "abc":
        assert loki.fetch_lines(f'{{app="test",kind="{kind}"}}') == source.lines(kind=kind)


async def test_a_loki_that_is_killed_again_and_again_has_every_line_once(loki: Loki) -> None:
    """Loki is killed while it takes batches, and starts again with the same data.

    Only the record that it was writing is removed: with it, Loki would lose lines at the next kill.
    """
    source, troubles = Source(), list[str]()
    generator = random.Random(4)

    async def hurt() -> None:
        for _ in range(6):
            pushed = len(source.made)
            while len(source.made) < pushed + 2000:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await asyncio.sleep(generator.uniform(0, 0.1))
            await asyncio.to_thread(loki.kill)
            await asyncio.to_thread(loki.start)

    target = LokiTarget(url=loki.url)
    async with LokiPusher(target, on_trouble=troubles.append, limits=Limits(lines=300)) as pusher:
        hurting = asyncio.create_task(hurt())
        while not hurting.done():
            assert await pusher.push(source.make(500, 100, kind="a") + source.make(100, 100, kind="b")) == []
        await hurting
    assert len([trouble for trouble in troubles if not trouble]) >= 5
    assert_once(loki, source.lines())
    assert loki.fetch_lines('{app="test",kind="a"}') == source.lines(kind="a")


async def test_lines_that_are_stored_though_the_answer_says_otherwise_do_not_come_twice(loki: Loki) -> None:
    """The connection is cut, or 500 answered, after Loki has taken all of a batch or half of it."""
    source, proxy = Source(), LokiProxy(loki)
    async with proxy.serve() as url, LokiPusher(LokiTarget(url=url), sleep=hurry) as pusher:
        proxy.choose = shuffle_faults(5, "", "cut", "500", "half")
        for _ in range(15):
            assert await pusher.push(source.make(150, kind="a") + source.make(50, kind="b")) == []
    assert min(proxy.faults[fault] for fault in ("cut", "500", "half")) > 3
    assert_once(loki, source.lines())
    assert loki.fetch_lines('{app="test",kind="a"}') == source.lines(kind="a")


async def test_without_the_right_to_query_no_line_is_lost_and_some_come_twice(loki: Loki) -> None:
    """The pusher reports it; this also shows that Loki itself does not drop doubled lines in these tests."""
    source, proxy, troubles = Source(), LokiProxy(loki), list[str]()
    proxy.may_ask = False
    async with proxy.serve() as url:
        pusher = LokiPusher(LokiTarget(url=url), on_trouble=troubles.append, sleep=hurry)
        faults = iter(["cut"])
        proxy.choose = lambda: next(faults, "")
        async with pusher:
            assert await pusher.push(source.make(500)) == []
    assert loki.fetch_lines(SELECTOR) == source.lines()
    assert loki.count_lines(SELECTOR) > len(source.made)
    assert troubles[0] == "it cannot be queried, so some lines may be stored twice: 403 Forbidden"
    assert troubles[-1] == ""


async def test_what_a_killed_process_had_pushed_is_not_pushed_again(loki: Loki) -> None:
    """It had not yet removed the lines from its outbox; the next one asks before it sends them."""
    source = Source()
    entries = source.make(400, kind="a") + source.make(100, kind="b")
    for brought in (350, 500):
        async with LokiPusher(LokiTarget(url=loki.url)) as pusher:
            assert await pusher.push(entries[:brought]) == []
    assert_once(loki, source.lines())


async def test_a_loki_that_stalls_stores_what_it_had_read_only_once(loki: Loki) -> None:
    """The request fails for want of an answer and is carried out later all the same."""
    source, troubles = Source(), list[str]()
    assert loki.process is not None

    async def freeze(pid: int) -> None:
        for _ in range(3):
            pushed = len(source.made)
            while len(source.made) < pushed + 900:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(1.5)
            os.kill(pid, signal.SIGCONT)

    target, limits = LokiTarget(url=loki.url), Limits(timeout_s=0.7)
    async with LokiPusher(target, on_trouble=troubles.append, limits=limits) as pusher:
        freezing = asyncio.create_task(freeze(loki.process.pid))
        while not freezing.done():
            assert await pusher.push(source.make(300, 100)) == []
        await freezing
    assert "no answer in 0.7 s" in troubles
    assert_once(loki, source.lines())


async def test_lines_over_the_rate_limit_of_a_stream_arrive_in_the_end(tmp_path: Path) -> None:
    """Loki has stored a part of such a batch when it answers 429."""
    limits = {
        "shard_streams": {"enabled": False},
        "per_stream_rate_limit": "20KB",
        "per_stream_rate_limit_burst": "20KB",
    }
    source, troubles = Source(), list[str]()
    with Loki(tmp_path / "loki", settings={**SMALL_BLOCKS, "limits_config": limits}) as loki:
        pusher = LokiPusher(LokiTarget(url=loki.url), on_trouble=troubles.append)
        async with pusher:
            await pusher.push([])  # nothing is in doubt any more
            assert await pusher.push(source.make(600, 100)) == []
        assert_once(loki, source.lines())
    assert troubles[0].startswith("429 entry with timestamp")
    assert troubles[-1] == ""


async def test_lines_of_more_than_an_hour_ago_need_a_stream_of_their_own(loki: Loki) -> None:
    """Loki refuses old lines beside newer ones, and only these; another stream does not hide the refusal."""
    now, old = Source(), Source(at_ns=time.time_ns() - 2 * HOUR_NS)
    async with LokiPusher(LokiTarget(url=loki.url)) as pusher:
        await pusher.push(now.make(100, kind="a"))
        behind, beside = old.make(100, kind="a"), now.make(100, kind="a")
        (refusal,) = await pusher.push(behind + beside + now.make(100, kind="b"))
        assert (refusal.entries, refusal.status) == (behind, 400)
        assert "entry too far behind" in refusal.reason
        assert_once(loki, now.lines())
        assert await pusher.push(old.make(100, kind="a", late="true")) == []
    assert_once(loki, old.lines(late="true"), '{app="test",late="true"}')
    assert_once(loki, now.lines(), '{app="test",late=""}')


async def test_a_line_that_is_too_long_is_refused_alone(loki: Loki) -> None:
    """Loki stores the other lines of the batch."""
    source = Source()
    entries = source.make(50) + source.make(1, 300_000) + source.make(50)
    async with LokiPusher(LokiTarget(url=loki.url)) as pusher:
        (refusal,) = await pusher.push(entries)
    assert (refusal.entries, refusal.status) == ([entries[50]], 400)
    assert "max entry size" in refusal.reason
    assert len(refusal.reason) <= 300
    del source.made[50]
    assert_once(loki, source.lines())


async def test_labels_that_loki_cannot_read_are_refused(loki: Loki) -> None:
    """The other streams go on."""
    now = time.time_ns()
    async with LokiPusher(LokiTarget(url=loki.url)) as pusher:
        refusals = await pusher.push(
            [Entry((("9", "x"),), now, "bad"), Entry((("app", "test"),), now, "good")]
        )
    assert [(refusal.entries[0].line, refusal.status) for refusal in refusals] == [("bad", 400)]
    assert_once(loki, [(now, "good")])


async def test_odd_labels_and_lines_are_recognized(loki: Loki) -> None:
    """Loki's own parser of the selector finds them again."""
    proxy, now = LokiProxy(loki), time.time_ns()
    names = ('a"b\\c', "new\nline\ttab", "{}=~", "ü 🙂", "`", "%0a\\n", "\x7f\x01", "")
    lines = ['"\\', "a\nb\r\n", "\t\x00\x1f", "🙂 ü\u2028", "", " x ", '{"level":"error","n":1}']
    lines += [letter * 600 for letter in "abc"]  # they fill a block, so that Loki forgets the others
    entries = [
        Entry((("app", "test"), ("name", name)), now + number, line)
        for name in names
        for number, line in enumerate(lines)
    ]
    async with proxy.serve() as url, LokiPusher(LokiTarget(url=url), sleep=hurry) as pusher:
        faults = iter(["cut"] * len(names))
        proxy.choose = lambda: next(faults, "")
        await pusher.push([])  # nothing is in doubt any more
        assert await pusher.push(entries) == []
    assert_once(loki, [(entry.at_ns, entry.line) for entry in entries])


async def test_tenants_are_kept_apart(tmp_path: Path) -> None:
    """Each tenant sees its own lines, and nothing is lost while the tenant is missing."""
    source, troubles = Source(), list[str]()
    with Loki(tmp_path / "loki", multi_tenant=True, settings=SMALL_BLOCKS) as loki:
        proxy = LokiProxy(loki)
        async with proxy.serve() as url:
            proxy.choose = shuffle_faults(6, "", "cut", "half")
            for tenant in ("a", "b"):
                async with LokiPusher(LokiTarget(url=url, tenant=tenant), sleep=hurry) as pusher:
                    for _ in range(4):
                        assert await pusher.push(source.make(100, tenant=tenant)) == []
        for tenant in ("a", "b"):
            queries = LokiQueries(loki.url, tenant)
            assert queries.fetch_lines(SELECTOR) == source.lines(tenant=tenant)
            assert queries.count_lines(SELECTOR) == 400
        told = asyncio.Event()

        def note(trouble: str) -> None:
            troubles.append(trouble)
            if trouble.startswith("401"):
                told.set()

        async with LokiPusher(LokiTarget(url=loki.url), on_trouble=note) as pusher:
            pushing = asyncio.create_task(pusher.push(source.make(1)))
            await asyncio.wait_for(told.wait(), 10)
            assert not pushing.done()
            pushing.cancel()
            await asyncio.gather(pushing, return_exceptions=True)
    assert troubles[-1] == "401 no org id"


async def hurry(pause_s: float) -> None:
    """A hundredth of a pause."""
    await asyncio.sleep(pause_s / 100)
